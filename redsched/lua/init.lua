#!lua
-- init: declare a cell new, so that it starts settled: nobody has to be waited for.
-- KEYS  1 meta, 2 changes, 3 hosts
-- Reply OK, or SAME when the cell exists (nothing is changed); epoch, now_ms
-- include: fence
local known = redis.call('EXISTS', KEYS[1]) == 1
local cell = fence()
if not known then
  redis.call('HSET', KEYS[1], 'settled', '1')
end
return {known and 'SAME' or 'OK', cell.epoch, cell.now_ms}
