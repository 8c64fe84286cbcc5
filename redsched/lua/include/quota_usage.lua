-- quota_usage(): what a claim uses of its project's quota: class -> amount over all its slots, and `claims`. Of a claim
-- that is to take the place of another, only what its former one is not counted for already (include/quota_shared.lua).
-- include: whole
local function quota_usage(claim)
  local usage = {claims = 1}
  for field, value in pairs(claim) do
    if string.sub(field, 1, 7) == 'amount.' then
      local class = string.match(field, '[^./]+$')
      usage[class] = (usage[class] or 0) + whole(value, 0, 0)
    end
  end
  for class, amount in pairs(usage) do
    usage[class] = math.max(0, amount - whole(claim['with_former.' .. class], 0, 0))
  end
  return usage
end
