-- A living claim gets other amounts. Amounts here are slot -> amount, of its host and of shared pools alike.
-- include: counted_in
-- include: fence
-- include: in_chunks
-- include: whole
local function amounts_in_argv(first)
  local amounts = {}
  for i = first, #ARGV, 2 do
    amounts[ARGV[i]] = tonumber(ARGV[i + 1])
  end
  return amounts
end

-- The fields of a claim's hash that begin with `prefix`, as amounts. An unreadable one counts as 0, as where it ends.
local function amounts_at(claim, prefix)
  local amounts = {}
  for field, value in pairs(claim) do
    if string.sub(field, 1, #prefix) == prefix then
      amounts[string.sub(field, #prefix + 1)] = whole(value, 0, 0)
    end
  end
  return amounts
end

local function equal_amounts(a, b)
  for slot, amount in pairs(a) do
    if b[slot] ~= amount then
      return false
    end
  end
  for slot in pairs(b) do
    if not a[slot] then
      return false
    end
  end
  return true
end

local function larger_of(a, b)
  local both = {}
  for slot, amount in pairs(a) do
    both[slot] = amount
  end
  for slot, amount in pairs(b) do
    both[slot] = math.max(both[slot] or 0, amount)
  end
  return both
end

-- A claim of these amounts as its hash would be, as far as it is counted beside its host.
local function as_claim(amounts, project)
  local fields = {project = project}
  for slot, amount in pairs(amounts) do
    fields['amount.' .. slot] = text(amount)
  end
  return fields
end

-- Append to `reply` the names of what these amounts count in and whose keys were not passed; true if there is any.
local function lacks_counters(things, amounts, project, reply)
  return lacks(things, as_claim(amounts, project), reply)
end

-- What changes when a claim of a project has `now` instead of `was`: the host's fields as a flat list of field, new
-- absolute value; pools and quota in memory.
local function exchanged(host_key, things, was, now, project)
  local fields = {}
  for slot in pairs(larger_of(was, now)) do
    local by = (now[slot] or 0) - (was[slot] or 0)
    if by ~= 0 and string.sub(slot, 1, 5) ~= 'pool:' then
      local held = whole(redis.call('HGET', host_key, 'claimed.' .. slot), 0, MOST)
      fields[#fields + 1] = 'claimed.' .. slot
      fields[#fields + 1] = text(math.max(0, math.min(MOST, held + by)))
    end
  end
  count_claim(things, as_claim(now, project), 1)
  count_claim(things, as_claim(was, project), -1)
  return fields
end

-- Write the amounts of a claim's hash anew, under `prefix`; `was` are those that it has there.
local function write_amounts(claim_key, prefix, was, now)
  local set, gone = {}, {}
  for slot in pairs(was) do
    if not now[slot] then
      gone[#gone + 1] = prefix .. slot
    end
  end
  for slot, amount in pairs(now) do
    set[#set + 1] = prefix .. slot
    set[#set + 1] = text(amount)
  end
  in_chunks('HSET', claim_key, set)
  in_chunks('HDEL', claim_key, gone)
end
