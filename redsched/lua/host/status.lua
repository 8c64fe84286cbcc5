#!lua
-- status: set a host's status: enabled, disabled or draining. Its claims stay; with `move` schedulers place them
-- elsewhere. The evacuation of a host goes on until it is enabled.
-- KEYS meta changes hosts host leaving
-- ARGV host status move deadline_ms after
--   move         0 or 1
--   deadline_ms  of a drain with moves: how long from now on claims are moved; '' for any time
--   after        stop or keep: what becomes of the claims that are left after that; '' without a deadline
-- Reply OK | SAME (nothing changed) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
local cell = fence()
local host = redis.call('HMGET', KEY.host, 'version', 'status', 'leaving', 'drain_by_ms')
if not host[1] then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
local leaving = ARG.move == '1' and 'move' or false
if host[3] == 'evacuate' and ARG.status ~= 'enabled' then
  leaving = 'evacuate'
end
local drain_by_ms = leaving == 'move' and ARG.deadline_ms ~= '' and text(cell.now_ms + tonumber(ARG.deadline_ms))
if host[2] == ARG.status and host[3] == leaving and not host[4] and not drain_by_ms then
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
if drain_by_ms then
  redis.call('HSET', KEY.host, 'drain_by_ms', drain_by_ms, 'drain_then', ARG.after)
else
  redis.call('HDEL', KEY.host, 'drain_by_ms', 'drain_then')
end
return {'OK', cell.epoch, cell.now_ms}
