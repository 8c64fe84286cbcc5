-- shared_usage(): what a claim and the one that is to take its place both use. They are counted once, at the larger
-- amounts: this stands as `with_former.<class>` in the one of them that is counted for the rest only.
-- include: quota_usage
local function shared_usage(former, usage)
  local shared = {}
  if former.state == 'ended' then
    return shared
  end
  local before = quota_usage(former)
  for class, amount in pairs(usage) do
    shared[class] = math.min(amount, before[class] or 0)
  end
  return shared
end
