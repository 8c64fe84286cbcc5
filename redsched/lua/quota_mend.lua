#!lua flags=allow-oom
-- quota_mend: do the sums of a ledger, its list of ids and its deadlines say what its entries do? Looked at in one
-- instant, and worked out anew from the entries if that is wanted. What the entries should say only the cells know.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, then the entry of each id
-- ARGV  1 whether to mend: 1 or 0; then the ids
-- Reply OK, epoch, now_ms, then of each fault: kind (entry | listed | deadline | used), id or class, found, should
--   RETRY, epoch, now_ms, then ids that are listed or have a deadline, and are not among these
--   SETTLING (to be counted anew) | UNKNOWN (no ledger)
-- include: fence
-- include: quota_entries
-- include: quota_ledger
-- include: quota_uncounted
-- include: whole
local TAKES = {reserved = true, held = true}

local cell, ledger = open_ledger()
local no = uncounted_answer(cell, ledger)
if no then
  return no
end
local given, states, sums = {}, {}, {}
for i = 2, #ARGV do
  local entry, takes = read_entry(KEYS[3 + i])
  given[ARGV[i]] = KEYS[3 + i]
  states[ARGV[i]] = entry.state or (next(entry) and '')
  if TAKES[entry.state] then
    change(sums, {}, takes)
  end
end
local missing = {'RETRY', cell.epoch, cell.now_ms}
local function named(ids)
  local found = {}
  for _, id in ipairs(ids) do
    found[id] = true
    if not given[id] then
      missing[#missing + 1] = id
    end
  end
  return found
end
local listed = named(redis.call('SMEMBERS', KEYS[4]))
local due = named(redis.call('ZRANGE', KEYS[3], 0, -1))
if #missing > 3 then
  return missing
end

local reply = {'OK', cell.epoch, cell.now_ms}
local function fault(kind, name, found, should, ...)
  for _, fact in ipairs({kind, name, found, should}) do
    reply[#reply + 1] = fact
  end
  if ARGV[1] == '1' then
    redis.call(...)
  end
end

for id, key in pairs(given) do
  local state = states[id]
  local takes, reserved = TAKES[state], state == 'reserved'
  if state and not takes and state ~= 'freed' then
    fault('entry', id, 'neither reserved nor held', 'none', 'DEL', key)
  end
  if takes and not listed[id] then
    fault('listed', id, 'no', 'yes', 'SADD', KEYS[4], id)
  elseif listed[id] and not takes then
    fault('listed', id, 'yes', 'no', 'SREM', KEYS[4], id)
  end
  if reserved and not due[id] then
    fault('deadline', id, 'none', 'a lease', 'ZADD', KEYS[3], text(cell.now_ms), id)
  elseif due[id] and not reserved then
    fault('deadline', id, 'a lease', 'none', 'ZREM', KEYS[3], id)
  end
end
for field in pairs(ledger) do
  local class = string.match(field, '^used%.(.+)$')
  if class then
    sums[class] = sums[class] or 0
  end
end
for class, sum in pairs(sums) do
  local says, should = ledger['used.' .. class] or '0', text(math.min(MOST, sum))
  if says ~= should then
    fault('used', class, says, should, 'HSET', KEYS[2], 'used.' .. class, should)
  end
end
return reply
