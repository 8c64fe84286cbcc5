#!lua
-- init: the operator declares a cell new: it has no hosts that could still have something to say, so it is settled.
-- KEYS  1 meta, 2 changes, 3 hosts
-- Reply OK, or SAME when it is settled or has hosts (nothing is changed); epoch, now_ms
-- include: fence
local cell = fence()
if cell.settled or redis.call('ZCARD', KEYS[3]) > 0 then
  return {'SAME', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEYS[1], 'settled', '1', 'unattested', '0')
return {'OK', cell.epoch, cell.now_ms}
