-- The counts that rules use, by domain, in the hash of a group or in the tally of one call. domain_of(): the domain of
-- a host, false for none. read_least(): the lowest count for a skew rule. count_in(): count a placed member.
-- include: in_chunks
-- include: object_counts
-- include: to_int
local function domain_of(host, by)
  local domain = host.domains[by]
  if domain == nil then
    if by == 'zone' then
      domain = redis.call('HGET', host.key, 'zone')
    else
      domain = redis.call('HGET', host.attributes_key, 'label.' .. string.sub(by, 7))
    end
    domain = domain ~= '' and domain
    host.domains[by] = domain
  end
  return domain
end

local function field_of(by, domain)
  return 'count.' .. by .. '=' .. domain
end

-- Return the stored values of some fields of a group; none for the tally of one call.
local function stored_of(tally, fields)
  local stored = {}
  for first = 1, tally.hash and 0 or #fields, CHUNK do
    local some = redis.call('HMGET', tally.key, unpack(fields, first, math.min(first + CHUNK - 1, #fields)))
    for i = 1, #some do
      stored[#stored + 1] = some[i]
    end
  end
  return stored
end

-- Read the counts of a skew rule's domains, once: the number of domains at each count, and the lowest count.
local function read_least(rule)
  local fields, tally = {}, rule.tally
  for i, domain in ipairs(rule.domains) do
    fields[i] = field_of(rule.by, domain)
  end
  local counts = stored_of(tally, fields)
  rule.listed, rule.number_at, rule.least = {}, {}, MOST
  for i, domain in ipairs(rule.domains) do
    local count = tally.now[fields[i]] or to_int(counts[i], 0, MOST)
    if not rule.listed[domain] then
      rule.listed[domain] = true
      rule.number_at[count] = (rule.number_at[count] or 0) + 1
      rule.least = math.min(rule.least, count)
      rule.unreadable = rule.unreadable or count == MOST
    end
  end
end

-- Count a placement in a domain. Counts only grow during a call: when the last domain has left the lowest count, the
-- lowest count is one more.
local function count_in(tally, by, domain)
  local field = field_of(by, domain)
  local count = number_of(tally, field)
  for _, rule in ipairs(tally.skews or {}) do
    if rule.by == by and rule.listed and rule.listed[domain] then
      local at = rule.number_at
      at[count], at[count + 1] = at[count] - 1, (at[count + 1] or 0) + 1
      if count == rule.least and at[count] == 0 then
        rule.least = count + 1
      end
    end
  end
  add(tally, field, 1)
end
