#!lua
-- keep: a request that the store has lost is put back, from a copy of the cell or by an agent, so that claims can be
-- placed anew by it.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 request
-- ARGV  1 the request, 2 for how long in ms
-- Reply OK; epoch, now_ms
-- include: fence
local cell = fence()
redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
return {'OK', cell.epoch, cell.now_ms}
