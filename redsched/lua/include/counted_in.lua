-- The groups, shared pools, gangs and quotas of claims that end or come back. The caller of a script may not know them;
-- the claim's hash does. A script that lacks the key of one answers RETRY with its name before it writes anything.
-- The names of what a claim counts in: `server-group:web`, `pool:licences`, `gang:a`, `quota:web`.
-- include: amounts
-- include: quota_of
-- include: quota_usage
-- include: things
local function counted_in(claim)
  local names, seen = {}, {}
  local function put(name)
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  if claim.group then
    put('server-group:' .. claim.group)
  end
  if claim.gang then
    put('gang:' .. claim.gang)
  end
  if quota_of(claim) then
    put(quota_of(claim))
  end
  local _, shared = amounts_of(claim, 0)
  for slot in pairs(shared) do
    put(string.match(slot, '^(.+)/'))
  end
  return names
end

-- Append to `reply` the names of those whose keys were not passed; true if there is any.
local function lacks(things, claim, reply)
  local lacking = false
  for _, name in ipairs(counted_in(claim)) do
    if not things[name] then
      lacking = true
      reply[#reply + 1] = name
    end
  end
  return lacking
end

-- Count what a claim uses of its project's quota in (by = 1) or out (by = -1), in memory.
local function count_usage(things, claim, by)
  for class, amount in pairs(quota_of(claim) and quota_usage(claim) or {}) do
    add(things[quota_of(claim)], 'used.' .. class, by * amount)
  end
end

-- Count a claim in or out wherever it counts, in memory. A thing that is not there stays so when a
-- claim leaves it: what is 0 remains 0.
local function count_claim(things, claim, by)
  local function count(name, field, amount)
    add(things[name], field, by * amount)
  end
  if claim.group then
    local name = 'server-group:' .. claim.group
    count(name, 'members', 1)
    count(name, 'count.host=' .. claim.host, 1)
    for field, domain in pairs(claim) do
      local topology = string.match(field, '^in%.(.+)$')
      if topology then
        count(name, 'count.' .. topology .. '=' .. domain, 1)
      end
    end
  end
  local _, shared = amounts_of(claim, 0)
  for slot, amount in pairs(shared) do
    local name, class = string.match(slot, '^(.+)/(.+)$')
    count(name, 'claimed.' .. class, amount)
  end
  count_usage(things, claim, by)
end
