#!lua
-- status: the operator's word on a host: enabled, disabled or draining. What the host holds is not touched.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host
-- ARGV  1 host, 2 status
-- Reply OK | SAME (it has that status) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
local cell = fence()
local host = redis.call('HMGET', KEYS[4], 'version', 'status')
if not host[1] then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
if host[2] == ARGV[2] then
  return {'SAME', cell.epoch, cell.now_ms}
end
local version = tonumber(host[1]) + 1
publish(cell, 'host', ARGV[1], version, 'status', 0, {'status', ARGV[2]})
redis.call('HSET', KEYS[4], 'status', ARGV[2], 'version', text(version))
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
