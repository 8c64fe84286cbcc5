-- differing_sums(): compare the fields of a host with the sums of its claims. Returns a flat list of field, true value,
-- and the fields that should not be there; nil if sums_of() returns nil.
-- include: fence
-- include: sums
-- include: to_int
local function differing_sums(host, held)
  local sums, changed, removed = sums_of(held), {}, {}
  if not sums then
    return nil
  end
  for field, sum in pairs(sums) do
    if to_int(host[field], 0, -1) ~= sum then
      changed[#changed + 1] = field
      changed[#changed + 1] = text(sum)
    end
  end
  for field, value in pairs(host) do
    if string.match(field, '^claimed%.') and not sums[field] and value ~= '0' then
      removed[#removed + 1] = field
    end
  end
  return changed, removed
end
