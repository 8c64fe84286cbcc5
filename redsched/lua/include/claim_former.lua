-- The claims that members of a call of claim.lua are to succeed: by a move, as the next alternate of one that failed,
-- or because it was shelved. What becomes of the former one is succeed.lua's matter.
--
-- KEYS  of each former: claim, host, gang (its claim again where it is in none)
-- ARGV  of each former: member number, id, token, why (moved, failed or shelved), by_ms ('' for any time: how long from
--       now on a move may take until the member is active)
-- include: claim_state
-- include: fence
-- include: read_hash
-- include: thing_at
local function parse_formers(call, at)
  local count = tonumber(ARGV[15])
  local key_at = #KEYS - 3 * count - (call.gang and 1 or 0) - (ARGV[12] ~= '' and 1 or 0)
  for _ = 1, count do
    call.members[tonumber(ARGV[at + 1])].former = {id = ARGV[at + 2], token = ARGV[at + 3], why = ARGV[at + 4],
      by_ms = tonumber(ARGV[at + 5]), key = KEYS[key_at + 1], host_key = KEYS[key_at + 2], gang_key = KEYS[key_at + 3]}
    at, key_at = at + 5, key_at + 3
  end
  return at
end

-- May it be succeeded for that reason? One that failed may have ended as that already.
local function is_there(state, why, reason)
  if reason == 'shelved' then
    return state == 'ended' and why == 'shelved'
  elseif state == 'ending' or state == 'ended' then
    return reason == 'failed' and (why == 'failed' or why == 'expired')
  end
  return true
end

-- Does it stand or fall with others, or has it fallen with them? Then it has no place alone.
local function is_bound(claim, gang_key)
  return claim.fell or (claim.gang and redis.call('EXISTS', gang_key) == 1)
end

-- Why a former claim cannot be succeeded, or nil:
--   FORMER (there is none) | STALE (it has another token, or is of another gang than was said)
--   GONE (it has ended, or is ending, or is not shelved; or it came to nothing, and what it was to succeed goes on)
--   MOVING, id (that claim is to succeed it already; its own id: it is itself still to succeed another)
--   GANG (its gang is waited for, or has failed: see include/gang.lua)
--   ATTEST (its host has not attested to this epoch)
local function former_outcome(cell, call)
  for _, member in ipairs(call.members) do
    local former = member.former
    if former then
      local claim, known = read_hash(former.key)
      local no = obstacle(cell, {host = former.host_key}, claim, claim.host, former.token)
      former.origin, former.host, former.claim = claim.origin or former.id, claim.host, claim
      if former.why ~= 'shelved' and no == 'ATTEST' then
        return {'ATTEST', cell.epoch, cell.now_ms}
      elseif not known then
        return {'FORMER', cell.epoch, cell.now_ms}
      elseif claim.token ~= former.token
          or (claim.gang and thing_at(former.gang_key).name ~= 'gang:' .. claim.gang) then
        return {'STALE', cell.epoch, cell.now_ms}
      elseif claim.next or claim.former then
        return {'MOVING', cell.epoch, cell.now_ms, claim.next or former.id}
      elseif not is_there(claim.state, claim.why, former.why) or (claim.fell and claim.origin) then
        return {'GONE', cell.epoch, cell.now_ms}
      elseif is_bound(claim, former.gang_key) then
        return {'GANG', cell.epoch, cell.now_ms}
      end
    end
  end
  return nil
end

-- Append to the fields of a claim what it is to succeed, and note that in the former one.
local function add_former(cell, claim, member)
  local former = member.former
  local function put(field, value)
    claim[#claim + 1] = field
    claim[#claim + 1] = value
  end
  put('origin', former.origin)
  put('former', former.id)
  put('former_host', former.host)
  put('former_token', former.token)
  put('former_why', former.why)
  put('came_from', former.id)
  local due_ms = former.why == 'failed' and cell.now_ms or former.by_ms and cell.now_ms + former.by_ms
  if due_ms then
    redis.call('ZADD', KEYS[5], text(due_ms), member.id)
  end
  if former.by_ms then
    put('by_ms', text(due_ms))
  end
  for class, amount in pairs(member.with_former or {}) do
    put('with_former.' .. class, text(amount))
  end
  redis.call('HSET', former.key, 'next', member.id)
  redis.call('HDEL', former.key, 'final')
  redis.call('PERSIST', former.key) -- until when one that has failed is remembered, who finishes this says
end
