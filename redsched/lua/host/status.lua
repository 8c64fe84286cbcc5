#!lua
-- status: set a host's status: enabled, disabled or draining. Its claims stay; with `move` schedulers place them
-- elsewhere. The evacuation of a host goes on until it is enabled.
-- KEYS meta changes hosts host draining
-- ARGV host status move deadline_ms after
--   move         0 or 1
--   deadline_ms  of a drain with moves: how long from now on claims are moved; '' for any time
--   after        stop or keep: what becomes of the claims that are left after that; '' without a deadline
-- Reply OK | ALREADY_DONE (nothing changed) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
local cell = fence()
local host = redis.call('HMGET', KEY.host, 'version', 'status', 'draining', 'drain_deadline_ms')
if not host[1] then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
local draining = ARG.move == '1' and 'move' or false
if host[3] == 'evacuate' and ARG.status ~= 'enabled' then
  draining = 'evacuate'
end
local drain_deadline_ms = draining == 'move' and ARG.deadline_ms ~= '' and text(cell.now_ms + tonumber(ARG.deadline_ms))
if host[2] == ARG.status and host[3] == draining and not host[4] and not drain_deadline_ms then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
end
if host[2] ~= ARG.status then
  local version = tonumber(host[1]) + 1
  publish(cell, 'host', ARG.host, version, 'status', 0, {'status', ARG.status})
  redis.call('HSET', KEY.host, 'status', ARG.status, 'version', text(version))
  finish(cell)
end
if draining then
  redis.call('HSET', KEY.host, 'draining', draining)
  redis.call('SADD', KEY.draining, ARG.host)
else
  redis.call('HDEL', KEY.host, 'draining')
  redis.call('SREM', KEY.draining, ARG.host)
end
if drain_deadline_ms then
  redis.call('HSET', KEY.host, 'drain_deadline_ms', drain_deadline_ms, 'drain_then', ARG.after)
else
  redis.call('HDEL', KEY.host, 'drain_deadline_ms', 'drain_then')
end
return {'OK', cell.epoch, cell.now_ms}
