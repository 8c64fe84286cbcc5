-- counters(): the sums of a claim's placements, by the object that counts it: name of the object (`host:h1`,
-- `server-group:web`, `pool:licences`, `quota:web`) -> field -> number. The numbers that a script changes are the
-- difference between before and after, so that no script adds or subtracts by itself.
-- include: claim_record
-- include: leased
-- include: quota_usage
local function count(counts, name, field, amount)
  counts[name] = counts[name] or {}
  counts[name][field] = (counts[name][field] or 0) + amount
end

local function count_amounts(counts, placement)
  for slot, amount in pairs(placement.amounts) do
    local pool, class = string.match(slot, '^(pool:.+)/(.+)$')
    if pool then
      count(counts, pool, 'claimed.' .. class, amount)
    else
      count(counts, 'host:' .. placement.host, 'claimed.' .. slot, amount)
    end
  end
end

local function count_in_group(counts, group, placement)
  local name = 'server-group:' .. group
  count(counts, name, 'members', 1)
  count(counts, name, 'count.host=' .. placement.host, 1)
  for topology, domain in pairs(placement.counted) do
    count(counts, name, 'count.' .. topology .. '=' .. domain, 1)
  end
end

local function counters(claim)
  local counts = {}
  if (claim.fields.project or '') ~= '' then
    for class, amount in pairs(quota_usage(claim)) do
      count(counts, 'quota:' .. claim.fields.project, 'used.' .. class, amount)
    end
  end
  for _, placement in pairs(claim.placements) do
    local host = 'host:' .. placement.host
    count(counts, host, 'claims', 1)
    count(counts, host, 'starting', LEASED[placement.state] and 1 or 0)
    count_amounts(counts, placement)
    if claim.fields.group then
      count_in_group(counts, claim.fields.group, placement)
    end
  end
  return counts
end

-- Return the difference of two such tables, as one.
local function difference(before, after)
  local delta = {}
  for name, fields in pairs(after) do
    for field, number in pairs(fields) do
      local by = number - (before[name] and before[name][field] or 0)
      if by ~= 0 then
        count(delta, name, field, by)
      end
    end
  end
  for name, fields in pairs(before) do
    for field, number in pairs(fields) do
      if number ~= 0 and not (after[name] and after[name][field]) then
        count(delta, name, field, -number)
      end
    end
  end
  return delta
end
