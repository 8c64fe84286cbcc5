-- quota_usage(): return what a claim uses of its project's quota: class -> amount over all slots, and `claims`. While
-- it moves it counts once, at the largest amounts of its placements.
-- include: add_usage
-- include: claim_record
local function usage_of_amounts(amounts)
  local usage = {claims = 1}
  for slot, amount in pairs(amounts) do
    add_usage(usage, slot, amount)
  end
  return usage
end

local function larger_usage(a, b)
  for class, amount in pairs(b) do
    a[class] = math.max(a[class] or 0, amount)
  end
  return a
end

local function quota_usage(claim)
  local usage = {}
  for _, placement in pairs(claim.placements) do
    larger_usage(usage, usage_of_amounts(placement.amounts))
  end
  return usage
end
