-- count_active(): a member of a gang is active: one fewer to wait for. With the last the gang has come up, and its hash
-- goes: from then on each of its claims stands alone.
local function count_active(gang)
  local waiting = whole(redis.call('HGET', gang.key, 'waiting'), 0, 0)
  if waiting > 1 then
    redis.call('HSET', gang.key, 'waiting', text(waiting - 1))
  else
    redis.call('DEL', gang.key)
  end
end
