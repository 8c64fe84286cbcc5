-- Rules about other placements. violated_rule(): return why a member may not be placed on a host that has room, or nil.
-- place(): take the shared amounts and count the member, in memory. The domain is false if a host is in none.
--
-- A group counts what its hash has and the members of this call that join it; a rule without a group counts only those
-- of this call that it covers. A group's own hard policy is read from its hash and applies to whatever joins it,
-- whatever rules the call has: the scheduler's replica may not have the policy yet. What a member leaves behind on a
-- host that was written off (claim_left.lua) does not restrict it.
-- include: claim_counts
-- include: object_counts
-- include: to_int
local NOTHING_LEFT = {members = 0}

-- Return a count without what the members of a call leave behind.
local function without(left, field, count)
  return math.max(0, count - (left[field] or 0))
end

local function least_without(left, rule)
  local least, prefix = rule.least, field_of(rule.by, '')
  for field in pairs(left) do
    if string.sub(field, 1, #prefix) == prefix and rule.listed[string.sub(field, #prefix + 1)] then
      least = math.min(least, without(left, field, number_of(rule.tally, field)))
    end
  end
  return least
end

local function holds(rule, host, member)
  local domain, tally = domain_of(host, rule.by), rule.tally
  if not domain then
    return false
  end
  local left = tally == member.group and member.left or NOTHING_LEFT
  local field = field_of(rule.by, domain)
  local count = number_of(tally, field)
  if count == MOST then
    return false -- unreadable
  end
  count = without(left, field, count)
  if rule.kind == 'apart' then
    return count + 1 <= rule.most
  elseif rule.kind == 'together' then
    -- All members are counted in this domain: none is elsewhere, and none is uncounted.
    return count == without(left, 'members', number_of(tally, 'members'))
  end
  if not rule.listed then
    read_least(rule)
  end
  return not rule.unreadable and count + 1 - math.min(count, least_without(left, rule)) <= rule.most
end

local function violated_rule(member, host)
  local limit = host.limit
  if limit and not (host.claims + host.placed < (limit.claims or MOST)
      and host.starting + host.placed < (limit.starting or MOST)) then
    return 'LIMIT'
  end
  for _, rule in ipairs(member.rules or {}) do
    if not holds(rule, host, member) then
      return 'GROUP'
    end
  end
  local group = member.group
  if group and (group.rule and not holds(group.rule, host, member) or number_of(group, 'members') == MOST) then
    return 'GROUP'
  end
  return nil
end

local function place(member, host, list)
  for _, entry in ipairs(list.shared or {}) do
    local slot = entry.object.slots[entry.class]
    slot.claimed = slot.claimed + entry.amount
    add(entry.object, 'claimed.' .. entry.class, entry.amount)
  end
  for _, rule in ipairs(member.rules or {}) do
    local domain = not rule.group and domain_of(host, rule.by)
    if domain then
      add(rule.tally, 'members', 1)
      count_in(rule.tally, rule.by, domain)
    end
  end
  if member.group then
    member.counted = {}
    add(member.group, 'members', 1)
    count_in(member.group, 'host', host.name)
    for _, by in ipairs(member.group.topologies) do
      member.counted[by] = domain_of(host, by) or nil
      if member.counted[by] then
        count_in(member.group, by, member.counted[by])
      end
    end
  end
end
