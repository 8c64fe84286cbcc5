-- count_active(): a member of a gang is active: one fewer to wait for. With the last the gang has come up, and its hash
-- goes: from then on each of its claims stands alone. One that has failed is kept for who ends its members.
-- include: fence
-- include: whole
local function count_active(gang)
  local state = redis.call('HMGET', gang.key, 'waiting', 'why')
  local waiting = whole(state[1], 0, 0) - 1
  if waiting > 0 or state[2] then
    redis.call('HSET', gang.key, 'waiting', text(math.max(0, waiting)))
  else
    redis.call('DEL', gang.key)
  end
end
