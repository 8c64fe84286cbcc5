#!lua
-- status: the operator's word on a host: enabled, disabled or draining. What the host holds is not touched; with `move`
-- schedulers place its claims elsewhere. A host that is being evacuated goes on leaving until it is enabled.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host, 5 leaving
-- ARGV  1 host, 2 status, 3 move (0 or 1)
-- Reply OK | SAME (it has that status, and is leaving or not, as said) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
local cell = fence()
local host = redis.call('HMGET', KEYS[4], 'version', 'status', 'leaving')
if not host[1] then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
local leaving = ARGV[3] == '1' and 'move' or false
if host[3] == 'evacuate' and ARGV[2] ~= 'enabled' then
  leaving = 'evacuate'
end
if host[2] == ARGV[2] and host[3] == leaving then
  return {'SAME', cell.epoch, cell.now_ms}
end
if host[2] ~= ARGV[2] then
  local version = tonumber(host[1]) + 1
  publish(cell, 'host', ARGV[1], version, 'status', 0, {'status', ARGV[2]})
  redis.call('HSET', KEYS[4], 'status', ARGV[2], 'version', text(version))
  finish(cell)
end
if leaving then
  redis.call('HSET', KEYS[4], 'leaving', leaving)
  redis.call('SADD', KEYS[5], ARGV[1])
else
  redis.call('HDEL', KEYS[4], 'leaving')
  redis.call('SREM', KEYS[5], ARGV[1])
end
return {'OK', cell.epoch, cell.now_ms}
