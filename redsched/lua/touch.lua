#!lua flags=allow-oom
-- touch: write, whatever was there, so that a WAIT behind it on this connection waits for all that was written before.
-- KEYS  1 meta, 2 changes, 3 hosts
-- Reply OK, epoch, now_ms
-- include: fence
local cell = fence()
redis.call('HSET', KEYS[1], 'now_ms', string.format('%.0f', cell.now_ms))
return {'OK', cell.epoch, cell.now_ms}
