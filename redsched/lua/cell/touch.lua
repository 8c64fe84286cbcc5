#!lua flags=allow-oom
-- touch: write something in any case, so that a WAIT after it on this connection waits for all earlier writes.
-- KEYS meta changes hosts
-- Reply OK, epoch, now_ms
-- include: fence
local cell = fence()
redis.call('HSET', KEY.meta, 'now_ms', text(cell.now_ms))
return {'OK', cell.epoch, cell.now_ms}
