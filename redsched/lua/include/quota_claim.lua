-- over_quota(): count the members of a call of claim.lua, all placed, in their project's quota, in memory; the refusal
-- where they do not fit, or nil.
-- include: quota_room
-- include: quota_shared
-- include: things
local function usage_of(list)
  if not list.usage then
    local usage = {claims = 1}
    for _, entry in ipairs(list) do
      local class = string.match(entry.slot, '[^/]+$')
      usage[class] = (usage[class] or 0) + entry.amount
    end
    for _, entry in ipairs(list.shared or {}) do
      usage[entry.class] = (usage[entry.class] or 0) + entry.amount
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
    for class, amount in pairs(usage) do
      more[class] = (more[class] or 0) + amount
    end
    member.with_former = member.former and shared_usage(member.former.claim, usage)
    for class, amount in pairs(member.with_former or {}) do
      more[class] = more[class] - amount
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
