#!lua
-- quota_reserve: a project's claims are about to take amounts: within its limits all of them, or none. An id that takes
-- some already takes the larger of both; asked for nothing it is only marked, so that nobody else's word on it counts.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, then the entry of each id
-- ARGV  1 by: the name of this very call, 2 lease_ms, 3 number of cells; then cell, epoch of each; then of each id: id,
--       the claim that it is for ('' : as it was), its cell, length, class, amount ...
-- Reply OK, epoch, now_ms, then claim and cell of each id | SAME likewise (a copy of a call that was carried out)
--   OVER, epoch, now_ms, then class, limit, used, asked for each class that is exceeded: used + asked > limit
--   LATE (a copy: what it reserved has been freed) | SETTLING (to be counted anew) | UNKNOWN (no ledger)
-- include: fence
-- include: quota_counted
-- include: quota_entries
-- include: quota_ledger
-- include: quota_uncounted
-- include: quota_writes
-- include: whole
local cell, ledger = open_ledger()
local no = uncounted_answer(cell, ledger)
if no then
  return no
end
local counted, last = is_counted(cell, ledger, 3)
if not counted then
  return {'SETTLING', cell.epoch, cell.now_ms}
end
local entries, sums, copies = {}, {}, 0
while last < #ARGV do
  local id, claim, of, first = ARGV[last + 1], ARGV[last + 2], ARGV[last + 3], last + 4
  local key = KEYS[5 + #entries]
  local entry, before = read_entry(key)
  local asked
  asked, last = asked_amounts(first)
  if entry.by == ARGV[1] then
    if entry.state == 'freed' then
      return {'LATE', cell.epoch, cell.now_ms}
    end
    copies = copies + 1
  end
  local takes = {}
  for class, amount in pairs(before) do
    takes[class] = amount
  end
  for class, amount in pairs(asked) do
    takes[class] = math.max(amount, takes[class] or 0)
  end
  change(sums, before, takes)
  local new = {by = ARGV[1], claim = claim ~= '' and claim or entry.claim, cell = claim ~= '' and of or entry.cell,
    count = entry.count}
  entries[#entries + 1] = {key = key, id = id, new = new, takes = takes}
end

local over = {}
for class, asked in pairs(sums) do
  local limit, used = ledger['limit.' .. class], whole(ledger['used.' .. class], 0, MOST)
  if limit and asked > 0 and not (used + asked <= whole(limit, 0, 0)) then
    for _, fact in ipairs({class, limit, text(used), text(asked)}) do
      over[#over + 1] = fact
    end
  end
end
if #over > 0 then
  return {'OVER', cell.epoch, cell.now_ms, unpack(over)}
end

local reply = {copies > 0 and 'SAME' or 'OK', cell.epoch, cell.now_ms}
for _, one in ipairs(entries) do
  if copies == 0 then
    write_entry(one.key, one.id, 'reserved', one.new, one.takes)
    redis.call('ZADD', KEYS[3], text(cell.now_ms + tonumber(ARGV[2])), one.id)
  end
  reply[#reply + 1] = one.new.claim or ''
  reply[#reply + 1] = one.new.cell or ''
end
if copies == 0 then
  write_sums(ledger, sums)
end
return reply
