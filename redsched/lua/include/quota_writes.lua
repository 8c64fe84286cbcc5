-- What entries of a ledger are to take (include/quota_entries.lua). write_sums(): what all of them take together then.
-- include: fence
-- include: whole
local function write_sums(ledger, sums)
  for class, amount in pairs(sums) do
    local used = whole(ledger['used.' .. class], 0, MOST) + amount
    redis.call('HSET', KEYS[2], 'used.' .. class, text(math.max(0, math.min(MOST, used))))
  end
end

-- asked_amounts(): length, class, amount ... from ARGV[first] on, and where they end.
local function asked_amounts(first)
  local amounts, last = {}, first + 2 * tonumber(ARGV[first])
  for i = first + 1, last, 2 do
    amounts[ARGV[i]] = whole(ARGV[i + 1], 0, MOST)
  end
  return amounts, last
end

-- write_entry(): an entry anew, with all of its fields; one that was remembered as freed has ended with that.
local function write_entry(key, id, state, entry, takes)
  local fields = {'state', state, 'by', entry.by, 'claim', entry.claim or '', 'cell', entry.cell or '',
    'count', entry.count or ''}
  for class, amount in pairs(takes) do
    fields[#fields + 1] = 'amount.' .. class
    fields[#fields + 1] = text(amount)
  end
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(fields))
  redis.call('SADD', KEYS[4], id)
  if state == 'held' then
    redis.call('ZREM', KEYS[3], id)
  end
end
