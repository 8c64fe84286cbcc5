-- The gang of a claim: until all of its members are active, the end of one ends all. Its hash names those that have not
-- ended, and goes when none is waited for any more; a claim whose gang's hash is gone stands alone.
--
-- leave_gang(): a claim ends, or begins to. Its owner may let one go; any other end is a chore: the others are to
-- end too. The claim keeps `gang` only then. Whichever ends so, or after that, has fallen with its gang (`fell`).
-- include: fence
-- include: leased
-- include: whole
local BY_OWNER = {released = true, moved = true, shelved = true}

local function leave_gang(cell, things, claim, id, why)
  local gang = claim.gang and things['gang:' .. claim.gang]
  if not gang then
    return
  end
  local left = redis.call('HDEL', gang.key, 'member.' .. id) == 1
  local state = redis.call('HMGET', gang.key, 'waiting', 'why')
  if not left and state[2] then
    return -- it left before, and the chore is not done yet
  end
  local waiting = whole(state[1], 0, 0) - (left and LEASED[claim.state] and 1 or 0)
  local ends_all = left and not state[2] and not BY_OWNER[why]
  local members = redis.call('HLEN', gang.key) - (state[2] and 2 or 1)
  if members <= 0 or (waiting <= 0 and not state[2] and not ends_all) then
    redis.call('DEL', gang.key)
    ends_all = false
  else
    redis.call('HSET', gang.key, 'waiting', text(math.max(0, waiting)))
  end
  if left and not BY_OWNER[why] and (ends_all or state[2]) then
    claim.fell = '1'
  end
  if ends_all then
    redis.call('HSET', gang.key, 'why', why)
    redis.call('ZADD', KEYS[5], text(cell.now_ms), id)
  else
    claim.gang = nil
  end
end
