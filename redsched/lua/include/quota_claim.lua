-- over_quota(): count the members of a call of claim.lua, all placed, in their project's quota, in memory; the refusal
-- where they do not fit, or nil.
-- include: quota_room
-- include: quota_shared
-- include: things
local function usage_of(list)
  if not list.usage then
    local usage = {claims = 1}
    local function count(class, amount)
      usage[class] = (usage[class] or 0) + amount
    end
    for _, entry in ipairs(list) do
      count(string.match(entry.slot, '[^/]+$'), entry.amount)
    end
    for _, entry in ipairs(list.shared or {}) do
      count(entry.class, entry.amount)
    end
    list.usage = usage
  end
  return list.usage
end

local function over_quota(cell, call)
  local quota, more = call.quota, {}
  if not quota then
    return nil
  end
  for _, member in ipairs(call.members) do
    local usage = usage_of(member.amounts)
    member.with_former = member.former and shared_usage(member.former.claim, usage) or {}
    for class, amount in pairs(usage) do
      more[class] = (more[class] or 0) + amount - (member.with_former[class] or 0)
    end
  end
  local refusal = quota_refusal(cell, quota, more, call.limited)
  if not refusal then
    for class, amount in pairs(more) do
      add(quota, 'used.' .. class, amount)
    end
  end
  return refusal
end
