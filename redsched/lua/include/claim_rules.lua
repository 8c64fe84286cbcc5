-- Rules about other places. barred(): why a member may not go to a host though it has room, or nil. place(): take the
-- room for it and count it, in memory; a domain that a host is not in is false.
--
-- A group counts what its hash says and the members of this call that join it; a rule without a group only those of
-- this call that it covers. A group's own hard policy is read from its hash and holds for whoever joins it, whatever
-- rules the call brings: a scheduler may not have heard of it yet.
local function domain_of(host, by)
  local domain = host.domains[by]
  if domain == nil then
    if by == 'zone' then
      domain = redis.call('HGET', host.keys.host, 'zone')
    else
      domain = redis.call('HGET', host.keys.facts, 'label.' .. string.sub(by, 7))
    end
    domain = domain ~= '' and domain
    host.domains[by] = domain
  end
  return domain
end

local function field_of(by, domain)
  return 'count.' .. by .. '=' .. domain
end

-- Is there a member in any other domain than the one of this field?
local function elsewhere(tally, by, own)
  local prefix = field_of(by, '')
  for _, fields in ipairs({tally.hash, tally.now}) do
    for field in pairs(fields) do
      if field ~= own and string.sub(field, 1, #prefix) == prefix and number_of(tally, field) > 0 then
        return true
      end
    end
  end
  return false
end

local function holds(rule, host)
  local domain, tally = domain_of(host, rule.by), rule.tally
  if not domain then
    return false
  end
  local own = field_of(rule.by, domain)
  local count = number_of(tally, own)
  if rule.kind == 'apart' then
    return count + 1 <= rule.most
  elseif rule.kind == 'together' then
    return count < MOST and not elsewhere(tally, rule.by, own)
  end
  local least = count
  for _, other in ipairs(rule.domains) do
    local number = number_of(tally, field_of(rule.by, other))
    if number == MOST then
      return false -- unreadable
    end
    least = math.min(least, number)
  end
  return count + 1 - least <= rule.most
end

local function barred(member, host)
  local limit = host.limit
  if limit and not (host.claims + host.placed < (limit.claims or MOST)
      and host.starting + host.placed < (limit.starting or MOST)) then
    return 'LIMIT'
  end
  for _, rule in ipairs(member.rules or {}) do
    if not holds(rule, host) then
      return 'GROUP'
    end
  end
  local group = member.group
  if group and (group.rule and not holds(group.rule, host) or number_of(group, 'members') == MOST) then
    return 'GROUP'
  end
  return nil
end

local function place(member, host, list)
  for _, entry in ipairs(list.shared or {}) do
    local slot = entry.thing.slots[entry.class]
    slot.claimed = slot.claimed + entry.amount
    add(entry.thing, 'claimed.' .. entry.class, entry.amount)
  end
  for _, rule in ipairs(member.rules or {}) do
    local domain = not rule.group and domain_of(host, rule.by)
    if domain then
      add(rule.tally, field_of(rule.by, domain), 1)
    end
  end
  if member.group then
    member.counted = {}
    add(member.group, 'members', 1)
    add(member.group, field_of('host', host.name), 1)
    for _, by in ipairs(member.group.topologies) do
      member.counted[by] = domain_of(host, by) or nil
      if member.counted[by] then
        add(member.group, field_of(by, member.counted[by]), 1)
      end
    end
  end
end
