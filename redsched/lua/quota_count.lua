#!lua
-- quota_count: what some claims take, as a running count found them in the cells. What is reserved stays reserved.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, then the entry of each id
-- ARGV  1 count: its name, 2 lease_ms: how long it may still take; then of each id: id, claim, its cell, length, class,
--       amount ...; without amounts no cell has it
-- Reply OK | STALE (that count does not run any more); epoch, now_ms
-- include: fence
-- include: quota_entries
-- include: quota_ledger
-- include: quota_writes
local cell, ledger = open_ledger()
if not ledger or ledger.count ~= ARGV[1] or ledger.count_epoch ~= cell.epoch then
  return {'STALE', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEYS[2], 'count_until_ms', text(cell.now_ms + tonumber(ARGV[2])))
local last, number, sums = 2, 4, {}
while last < #ARGV do
  local id, claim, of, takes = ARGV[last + 1], ARGV[last + 2], ARGV[last + 3]
  takes, last = asked_amounts(last + 4)
  number = number + 1
  local entry, before = read_entry(KEYS[number])
  local reserved = entry.state == 'reserved'
  if entry.count == ARGV[1] then
    takes = nil -- a copy of this call has counted it
  elseif reserved then
    for class, amount in pairs(before) do
      takes[class] = math.max(amount, takes[class] or 0)
    end
  end
  if takes and (reserved or next(takes)) then
    entry.by, entry.count = entry.by or ARGV[1], ARGV[1]
    if not reserved then
      entry.claim, entry.cell = claim, of
    end
    change(sums, {}, takes)
    write_entry(KEYS[number], id, reserved and 'reserved' or 'held', entry, takes)
  elseif takes and entry.state ~= 'freed' then
    redis.call('DEL', KEYS[number])
    redis.call('SREM', KEYS[4], id)
    redis.call('ZREM', KEYS[3], id)
  end
end
write_sums(ledger, sums)
return {'OK', cell.epoch, cell.now_ms}
