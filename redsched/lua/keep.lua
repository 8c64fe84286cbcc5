#!lua
-- keep: a request of an exported cell is put back, for claims to be placed anew by.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 request
-- ARGV  1 the request, 2 for how long in ms
-- Reply OK; epoch, now_ms
-- include: fence
local cell = fence()
redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
return {'OK', cell.epoch, cell.now_ms}
