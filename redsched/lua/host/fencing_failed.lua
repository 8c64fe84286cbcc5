#!lua flags=allow-oom
-- fencing_failed: record that a host was not fenced: the command did not prove that its machine is off, or the host was
-- heard of meanwhile.
-- KEYS meta changes hosts host fencing
-- ARGV host began_ms reason
--   began_ms  what begin_fencing.lua has replied
-- Reply OK | ALREADY_DONE (it is recorded, or another attempt has begun since) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
-- include: to_int
local cell = fence()
local version = redis.call('HGET', KEY.host, 'version')
local noted = redis.call('HMGET', KEY.fencing, 'began_ms.' .. ARG.host, 'failed_ms.' .. ARG.host,
  'failures.' .. ARG.host)
if not version then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
elseif noted[1] ~= ARG.began_ms or to_int(noted[2], 0, 0) >= tonumber(ARG.began_ms) then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
end
publish(cell, 'host', ARG.host, version + 1, 'fence-failed', 0, {'reason', ARG.reason})
redis.call('HSET', KEY.host, 'version', text(version + 1))
redis.call('HSET', KEY.fencing, 'failed_ms.' .. ARG.host, text(cell.now_ms), 'problem.' .. ARG.host, ARG.reason,
  'failures.' .. ARG.host, text(to_int(noted[3], 0, 0) + 1))
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
