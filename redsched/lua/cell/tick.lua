#!lua flags=allow-oom
-- tick: run the fence, which notes the store's time. Schedulers call it every second, so that a clock jump shows.
-- KEYS meta changes hosts deadlines
-- Reply OK, epoch, now_ms, seq, settled (0 or 1), then if it is not: settle_at_ms, unattested and missing of meta
-- include: fence
local cell = fence(KEY.deadlines)
if cell.settled then
  return {'OK', cell.epoch, cell.now_ms, cell.seq, 1}
end
return {'OK', cell.epoch, cell.now_ms, cell.seq, 0,
  unpack(redis.call('HMGET', KEY.meta, 'settle_at_ms', 'unattested', 'missing'))}
