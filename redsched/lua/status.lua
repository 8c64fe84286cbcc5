#!lua
-- status: set a host's status: enabled, disabled or draining. Its claims stay; with `move` schedulers place them
-- elsewhere. The evacuation of a host goes on until it is enabled.
-- KEYS meta changes hosts host leaving
-- ARGV host status move
--   move  0 or 1
-- Reply OK | SAME (nothing changed) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
local cell = fence()
local host = redis.call('HMGET', KEY.host, 'version', 'status', 'leaving')
if not host[1] then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
local leaving = ARG.move == '1' and 'move' or false
if host[3] == 'evacuate' and ARG.status ~= 'enabled' then
  leaving = 'evacuate'
end
if host[2] == ARG.status and host[3] == leaving then
  return {'SAME', cell.epoch, cell.now_ms}
end
if host[2] ~= ARG.status then
  local version = tonumber(host[1]) + 1
  publish(cell, 'host', ARG.host, version, 'status', 0, {'status', ARG.status})
  redis.call('HSET', KEY.host, 'status', ARG.status, 'version', text(version))
  finish(cell)
end
if leaving then
  redis.call('HSET', KEY.host, 'leaving', leaving)
  redis.call('SADD', KEY.leaving, ARG.host)
else
  redis.call('HDEL', KEY.host, 'leaving')
  redis.call('SREM', KEY.leaving, ARG.host)
end
return {'OK', cell.epoch, cell.now_ms}
