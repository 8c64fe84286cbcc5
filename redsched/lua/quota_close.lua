#!lua
-- quota_close: a count has found everything. From now on the ledger can be relied on, in these epochs of the cells.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims
-- ARGV  1 count: its name, 2 number of cells; then cell, epoch of each
-- Reply OK | SAME (a copy) | STALE (that count does not run any more); epoch, now_ms
-- include: quota_counted
-- include: quota_ledger
local cell, ledger = open_ledger()
if ledger and (is_counted(cell, ledger, 2)) then
  return {'SAME', cell.epoch, cell.now_ms}
elseif not ledger or ledger.count ~= ARGV[1] or ledger.count_epoch ~= cell.epoch then
  return {'STALE', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEYS[2], 'counted_in', cell.epoch)
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[2], 'epoch.' .. ARGV[i], ARGV[i + 1])
end
redis.call('HDEL', KEYS[2], 'count', 'count_epoch', 'count_until_ms')
return {'OK', cell.epoch, cell.now_ms}
