#!lua flags=allow-oom
-- quota_hold: what claims really take now, from who reserved or marked them last. Nothing: they have ended, and are
-- remembered as freed for remember_s, so that a late copy of the reservation does not bring them back.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, then the entry of each id
-- ARGV  1 by: the call that reserved or marked them; then of each id: id, length, class, amount ...
-- Reply OK, epoch, now_ms, then the ids that somebody else has reserved or marked since, of which nothing is written
--   SETTLING (to be counted anew: the count will find it) | UNKNOWN (no ledger)
-- include: quota_entries
-- include: quota_ledger
-- include: quota_uncounted
-- include: quota_writes
local cell, ledger = open_ledger()
local reply = uncounted_answer(cell, ledger)
if reply then
  return reply
end
reply = {'OK', cell.epoch, cell.now_ms}
local last, number, sums = 1, 4, {}
while last < #ARGV do
  local id, takes = ARGV[last + 1]
  takes, last = asked_amounts(last + 2)
  number = number + 1
  local entry, before = read_entry(KEYS[number])
  if entry.by ~= ARGV[1] then
    reply[#reply + 1] = id
  elseif next(takes) then
    change(sums, before, takes)
    write_entry(KEYS[number], id, 'held', entry, takes)
  elseif entry.state ~= 'freed' then
    change(sums, before, {})
    redis.call('DEL', KEYS[number])
    redis.call('HSET', KEYS[number], 'state', 'freed', 'by', entry.by)
    redis.call('PEXPIRE', KEYS[number], cell.remember_ms)
    redis.call('SREM', KEYS[4], id)
    redis.call('ZREM', KEYS[3], id)
  end
end
write_sums(ledger, sums)
return reply
