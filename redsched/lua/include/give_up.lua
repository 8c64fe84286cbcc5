-- give_up(): an owner gives up the claim `id`, and with it all that goes by their own id, whose claim is at `key`:
-- whatever was placed under it is not wanted, also what comes up or comes back later. What that id leads to is a chore
-- then, for another one may have taken the place. Uses KEYS 5 chores.
-- include: fence
local function give_up(cell, key, id)
  local root = redis.call('HMGET', key, 'state', 'why', 'next')
  if root[1] and root[2] ~= 'shelved' then -- that is left to forget_shelved.lua
    redis.call('HSET', key, 'final', '1')
    redis.call('ZADD', KEYS[5], text(cell.now_ms), root[3] or id)
  end
end
