-- The gang of a claim: until all of its members are active, the end of one ends all. Its hash names those that have not
-- ended and counts those that are not active yet (`waiting`); it is deleted when it waits for none, and its members are
-- independent from then on. Changes are made in memory and written once by write_gangs().
-- include: claim_record
-- include: leased
-- include: passed
local BY_OWNER = {released = true, moved = true, shelved = true}

local function phase_of(claim)
  local phase = 'out'
  for _, placement in pairs(claim.placements) do
    if placement.state == 'active' then
      return 'active'
    elseif LEASED[placement.state] then
      phase = 'leased'
    end
  end
  return phase
end

-- Read the gangs of these claims, or note which keys are missing. A claim whose gang's hash is gone is independent.
local function bind_gangs(claims, objects, lacking)
  for _, claim in ipairs(claims) do
    local gang = claim.fields.gang and needs(objects, lacking, 'gang:' .. claim.fields.gang)
    if gang and not gang.hash then
      gang.hash, gang.exists = read_hash(gang.key)
      gang.waiting, gang.gone = to_int(gang.hash.waiting, 0, 0), {}
    end
    if gang and not gang.exists then
      claim.fields.gang = nil
    end
    claim.gang = gang and gang.exists and gang or nil
  end
end

-- Return whether the store's record of a host's claims is valid in this epoch. After a rollback it may be older than
-- what runs there: until the host has attested, a member that is only starting in the store may have been active, and
-- its gang complete.
local function had_attested(cell, host_key)
  local host = redis.call('HMGET', host_key, 'epoch', 'heard')
  return not host[1] or host[1] == cell.epoch or host[2] == cell.epoch
end

-- Return whether the other members must end. They need not while all members known to have ended had been active: the
-- gang may have been complete.
local function has_failed(gang)
  return gang.hash.end_reason and not gang.hash.may_be_complete
end

-- A placement on a host that was written off or removed is about to be released. If it is unknown whether it had been
-- active, its claim leaves the gang: a gang that may have been complete does not fail because of it.
local function judge_written_off(cell, claim, host_key)
  if claim.gang and not has_failed(claim.gang) and not had_attested(cell, host_key) then
    claim.leaves_gang = true
  end
end

-- Return whether the claim belongs to a gang, so that the end of one member still ends all.
local function is_bound(claim)
  return claim.gang ~= nil and not claim.leaves_gang
end

-- Return whether the end of a member fails its gang. It does not if the owner ended the member, or if attest.lua found
-- in the journal that it had been active.
local function fails_gang(claim, end_reason)
  return not (BY_OWNER[end_reason] or has_failed(claim.gang) or claim.leaves_gang)
end

-- Note that the end of a member fails its gang. If the member was active, the others may all have been active too
-- before the store lost data: then the gang has failed only once another member is known never to have been active
-- (fail.lua, with `again` gang).
local function note_failure(claim, was, end_reason)
  local hash = claim.gang.hash
  hash.end_reason = hash.end_reason or end_reason
  hash.may_be_complete = was == 'active' and claim.leaves_gang == nil and '1' or nil
  claim.gang.fails = true
end

-- Return the outcome that says why a member must not end with its gang (yet); nil if the gang has failed, or fails with
-- it.
local function blocks_ending(cell, claim, host_key)
  if not claim.gang or not claim.gang.hash.end_reason then
    return 'STALE'
  elseif has_failed(claim.gang) or phase_of(claim) == 'out' then
    return nil
  elseif phase_of(claim) == 'active' then
    return 'ALREADY_DONE'
  end
  return not had_attested(cell, host_key) and 'NOT_ATTESTED' or nil
end

-- Count the new state of a member. Returns whether the others must be reconciled now.
local function step_gang(claim, before, end_reason)
  local gang, was, now = claim.gang, phase_of(before), phase_of(claim)
  local member = 'member.' .. claim.id
  if not gang or was == now or not gang.hash[member] or gang.gone[member] then
    return false
  end
  gang.waiting = gang.waiting + (now == 'leased' and 1 or 0) - (was == 'leased' and 1 or 0)
  gang.changed = true
  if now ~= 'out' then
    return false
  end
  gang.gone[member] = true
  if not fails_gang(claim, end_reason) then
    claim.fields.gang = not claim.leaves_gang and claim.fields.gang or nil
    return false
  end
  note_failure(claim, was, end_reason)
  return true
end

local function write_gang(gang, left)
  local fields, hash = {'waiting', text(math.max(0, gang.waiting))}, gang.hash
  if gang.fails then
    fields[3], fields[4] = 'end_reason', hash.end_reason
    fields[5], fields[6] = hash.may_be_complete and 'may_be_complete', hash.may_be_complete
    left[#left + 1] = not hash.may_be_complete and 'may_be_complete' or nil
  end
  redis.call('HSET', gang.key, unpack(fields))
  in_chunks('HDEL', gang.key, left)
end

local function write_gangs(objects)
  for _, gang in ipairs(objects) do
    if gang.changed then
      local members, left = 0, {}
      for field in pairs(gang.hash) do
        local is_member = string.sub(field, 1, 7) == 'member.'
        members = members + ((is_member and not gang.gone[field]) and 1 or 0)
        left[#left + 1] = gang.gone[field] and field or nil
      end
      if members == 0 or (gang.waiting <= 0 and not has_failed(gang)) then
        redis.call('DEL', gang.key)
      else
        write_gang(gang, left)
      end
    end
  end
end
