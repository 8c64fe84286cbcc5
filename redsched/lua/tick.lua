#!lua flags=allow-oom
-- tick: let the fence look, and note the store's time. Schedulers call it every second, so that a jump of time shows.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines
-- Reply OK, epoch, now_ms, seq, settled (0 or 1)
-- include: fence
local cell = fence(KEYS[4])
return {'OK', cell.epoch, cell.now_ms, cell.seq, cell.settled and 1 or 0}
