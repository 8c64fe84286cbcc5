#!lua flags=allow-oom
-- tick: run the fence, which notes the store's time. Schedulers call it every second, so that a clock jump shows.
-- KEYS meta changes hosts deadlines
-- Reply OK, epoch, now_ms, seq, settled (0 or 1)
-- include: fence
local cell = fence(KEY.deadlines)
return {'OK', cell.epoch, cell.now_ms, cell.seq, cell.settled and 1 or 0}
