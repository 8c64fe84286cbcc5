-- over_quota(): count the members of a call, all placed, in their project's quota, in memory; return the refusal if
-- they exceed it, or nil.
-- include: add_usage
-- include: quota_room
-- include: object_counts
local function usage_of(list)
  if not list.usage then
    local usage = {claims = 1}
    for _, entry in ipairs(list) do
      add_usage(usage, entry.slot, entry.amount)
    end
    for _, entry in ipairs(list.shared or {}) do
      add_usage(usage, entry.slot, entry.amount)
    end
    list.usage = usage
  end
  return list.usage
end

-- Return the usage that one more placement adds to that of its claim (`member.used`).
local function added_usage(member)
  local usage, before = usage_of(member.amounts), member.used
  if not before then
    return usage
  end
  local added = {}
  for class, amount in pairs(usage) do
    added[class] = math.max(0, amount - (before[class] or 0))
  end
  return added
end

local function usage_of_all(members)
  if #members == 1 then
    return added_usage(members[1])
  end
  local all = {}
  for _, member in ipairs(members) do
    for class, amount in pairs(added_usage(member)) do
      all[class] = (all[class] or 0) + amount
    end
  end
  return all
end

local function over_quota(cell, call)
  local quota, more = call.quota, usage_of_all(call.members)
  local refusal = quota_refusal(cell, quota, more, ARG.limited == '1')
  if not refusal then
    for class, amount in pairs(more) do
      add(quota, 'used.' .. class, amount)
    end
  end
  return refusal
end
