-- The gang of a claim: until all of its members are active, the end of one ends all. Its hash names those that have not
-- ended and counts those that are not active yet (`waiting`); it goes when none is waited for, and its members stand
-- alone from then on. Changes are made in memory and written once by write_gangs().
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

-- Read the gangs of these claims, or note which keys are missing. A claim whose gang's hash is gone stands alone.
local function bind_gangs(claims, things, lacking)
  for _, claim in ipairs(claims) do
    local gang = claim.fields.gang and needs(things, lacking, 'gang:' .. claim.fields.gang)
    if gang and not gang.hash then
      gang.hash, gang.exists = read_hash(gang.key)
      gang.waiting, gang.gone = whole(gang.hash.waiting, 0, 0), {}
    end
    if gang and not gang.exists then
      claim.fields.gang = nil
    end
    claim.gang = gang and gang.exists and gang or nil
  end
end

-- Do all members of the claim's gang still stand or fall together?
local function is_bound(claim)
  return claim.gang ~= nil
end

-- Count what has become of a member. Its owner may let one go; any other end is a failure of the gang, which closes the
-- claim. Returns whether the others are to end now.
local function step_gang(claim, before, why)
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
  if BY_OWNER[why] or gang.hash.why then
    return false
  end
  gang.hash.why, gang.fails = why, why
  return true
end

local function write_gangs(things)
  for _, gang in ipairs(things) do
    if gang.changed then
      local members, left = 0, {}
      for field in pairs(gang.hash) do
        local is_member = string.sub(field, 1, 7) == 'member.'
        members = members + ((is_member and not gang.gone[field]) and 1 or 0)
        left[#left + 1] = gang.gone[field] and field or nil
      end
      if members == 0 or (gang.waiting <= 0 and not gang.hash.why) then
        redis.call('DEL', gang.key)
      else
        local fields = {'waiting', text(math.max(0, gang.waiting))}
        fields[3], fields[4] = gang.fails and 'why', gang.fails
        redis.call('HSET', gang.key, unpack(fields))
        in_chunks('HDEL', gang.key, left)
      end
    end
  end
end
