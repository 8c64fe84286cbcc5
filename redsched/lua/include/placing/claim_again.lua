-- The members of a call of replace.lua: claims that get another placement by a move, because their last one failed, or
-- because they were shelved. reconcile.lua handles the placement that they have.
-- include: due
-- include: gangs
-- include: end_reason
-- include: object_at
-- include: runtime_deadline
-- include: shift_claim
-- include: transitions
local function parse_again(call, at)
  local key_at = #KEYS - 2 * #call.members - (ARG.gang == '1' and 1 or 0) - (ARG.request ~= '' and 1 or 0)
  for _, member in ipairs(call.members) do
    local cause = ARGV[at + 2]
    member.again = {token = ARGV[at + 1], end_reason = cause == 'gang' and 'failed' or cause,
      with_gang = cause == 'gang', move_deadline_ms = tonumber(ARGV[at + 3]), host_key = KEYS[key_at + 1],
      gang_key = KEYS[key_at + 2]}
    at, key_at = at + 3, key_at + 2
  end
  call.others = {}
  local others = tonumber(ARGV[at + 1])
  key_at = key_at - 2 * #call.members - others
  for i = 1, others do
    call.others[i] = {key = KEYS[key_at + i], hosts = ARGV[at + 1 + i]}
  end
  return at + 1 + others
end

local function based_on(claim, token)
  for _, placement in pairs(claim.placements) do
    if placement.token == token then
      return placement
    end
  end
end

-- Return the placement that an earlier attempt of the same call has made, if it is wanted. One that is ending has
-- failed, and its host may never report its end: the claim can be placed elsewhere meanwhile.
local function made_before(claim, token)
  for _, placement in pairs(claim.placements) do
    if placement.from == token and placement.state ~= 'ending' and not is_doomed(claim, placement) then
      return placement
    end
  end
end

-- Return whether the claim is in no gang, or its gang no longer exists. False also if the call names another gang.
local function stands_alone(claim, gang_key)
  if not claim.fields.gang then
    return true
  end
  return object_at(gang_key).name == 'gang:' .. claim.fields.gang and redis.call('EXISTS', gang_key) == 0
end

-- Return whether a claim has placements on these hosts, and on no others.
local function is_on(claim, hosts)
  local unnamed = {}
  for _, placement in pairs(claim.placements) do
    unnamed[placement.host] = true
  end
  for host in string.gmatch(hosts, '%S+') do
    if not unnamed[host] then
      return false
    end
    unnamed[host] = nil
  end
  return next(unnamed) == nil
end

-- Return whether another claim has left, or joined, hosts since this call was decided.
local function others_have_moved(call)
  for _, other in ipairs(call.others) do
    if not is_on(load_claim(other.key), other.hosts) then
      return true
    end
  end
  return false
end

local REFUSAL = {}

-- The refusals by cause. Each waits until all hosts have attested: a call resent before that would create another
-- placement while the first one is still only in a journal. A move also requires that the placement is wanted, and is
-- not itself the target of a move.
function REFUSAL.moved(cell, claim, again)
  local base = based_on(claim, again.token)
  local host_state = read_host_state(cell, again.host_key)
  if host_state ~= 'here' and host_state ~= 'lost' then
    return 'NOT_ATTESTED'
  elseif not cell.settled then
    return 'SETTLING'
  elseif not base then
    return claim.tombstone and claim.tombstone.token == again.token and 'ENDED' or 'STALE'
  elseif base.state == 'ending' or is_doomed(claim, base) then
    return 'ENDED'
  elseif base.state ~= 'active' and has_other_wanted(claim, base) then
    return 'MOVING'
  end
  again.root = base.root
  again.reason, again.from_why = leaving_reason(base.host, again.host_key)
end

-- Another attempt requires that the claim waits for one. A claim whose gang is placed again waits for the others.
function REFUSAL.failed(cell, claim, again)
  local fields = claim.fields
  if fields.gang_exit and not again.with_gang then
    return 'GANG'
  end
  if has_other_wanted(claim) or not fields.retry_root then
    return claim.tombstone and claim.tombstone.state == 'ended' and 'ENDED' or 'STALE'
  elseif fields.retry_from ~= again.token then
    return 'STALE'
  elseif not cell.settled then
    return 'SETTLING'
  end
  again.root = fields.retry_root
  -- What was never active on a host that was written off has not failed there.
  local _, left = leaving_reason('', again.host_key)
  again.from_why = (left == 'written-off' and left) or (again.with_gang and 'gang') or fields.retry_reason
end

function REFUSAL.shelved(cell, claim, again)
  local last = claim.tombstone
  if not last or last.state ~= 'ended' or last.end_reason ~= 'shelved' then
    return 'ENDED'
  elseif last.token ~= again.token then
    return 'STALE'
  elseif not cell.settled then
    return 'SETTLING'
  end
end

-- Return the reply that says why the claims of a call cannot be placed again (see replace.lua), or nil.
local function again_outcome(cell, call)
  for _, member in ipairs(call.members) do
    local again, claim = member.again, load_claim(member.key, member.id)
    local before = made_before(claim, again.token)
    if before then
      return {'ALREADY_DONE', cell.epoch, cell.now_ms, 1, before.host, before.token, before.expires_at_ms or '',
        before.state, ''}
    elseif not claim.exists then
      return {'NO_CLAIM', cell.epoch, cell.now_ms}
    end
    local no = not stands_alone(claim, again.gang_key) and 'GANG' or REFUSAL[again.end_reason](cell, claim, again)
    if no then
      return {no, cell.epoch, cell.now_ms}
    end
    claim.base, again.claim = based_on(claim, again.token), claim
    again.from_host = (claim.base or claim.tombstone or {}).host
  end
  return others_have_moved(call) and {'RETRY', cell.epoch, cell.now_ms} or nil
end

-- Let the time that the work may run begin again. A move or a retry does not prolong it.
local function restart_runtime(cell, claim)
  local max_runtime_s = to_int(claim.fields.max_runtime_s, 0, 0)
  if max_runtime_s > 0 then
    claim.fields.runtime_deadline_ms = runtime_deadline(cell, max_runtime_s)
  end
end

-- Write the new placement of a claim beside those that it has.
local function write_again(cell, member, expires, entry_id, call)
  local again, amounts = member.again, {}
  local claim = again.claim
  for _, entry in ipairs(member.amounts) do
    amounts[entry.slot] = entry.amount
  end
  for _, entry in ipairs(member.amounts.shared or {}) do
    amounts[entry.slot] = entry.amount
  end
  local retries = again.end_reason == 'failed'
  if retries then
    claim.fields.attempts = text(to_int(claim.fields.attempts, 1, 1) + 1)
  elseif again.end_reason == 'shelved' then
    claim.fields.attempts = nil
  end
  claim.fields.retry_root, claim.fields.retry_from, claim.fields.retry_reason = nil, nil, nil
  claim.fields.searches = nil
  claim.fields.group = member.group and member.group.own_name or claim.fields.group
  claim.fields.gang, claim.fields.gang_exit = nil, nil -- it is no longer part of its gang
  for i = 1, #call.carried, 2 do
    claim.fields[call.carried[i]] = call.carried[i + 1]
  end
  claim.fields.claimed_at_ms = claim.fields.claimed_at_ms or text(cell.now_ms)
  if again.move_deadline_ms or claim.fields.runtime_deadline_ms then
    shift_claim(claim)
  end
  if again.end_reason == 'shelved' then
    restart_runtime(cell, claim)
  end
  add_placement(claim, {token = member.token, root = again.root, host = member.host.name, state = 'claimed',
    from = again.token, from_host = again.from_host, from_why = again.from_why or again.end_reason,
    placed_at_ms = text(cell.now_ms), expires_at_ms = expires, inbox_id = entry_id, amounts = amounts, resizing_to = {},
    counted = member.counted or {}, decision = member.decision,
    move_deadline_ms = again.move_deadline_ms and text(cell.now_ms + again.move_deadline_ms) or nil})
  write_claim_record(claim)
  redis.call('PERSIST', member.key)
  redis.call('ZADD', KEY.deadlines, text(deadline_of(claim)), member.id)
  if again.end_reason == 'shelved' then
    redis.call('SREM', KEY.shelved, member.id)
  elseif retries then
    redis.call('ZREM', KEY.reconcile, member.id)
  end
end
