-- differing_sums(): which fields of a host do not say what its claims make. Returns a flat list of field, true value,
-- and the fields that should not be there; nil where a claim's amount is no whole number, or the sum is too large.
-- `held` has the claims on the host, each as {claim = its hash}.
local function differing_sums(host, held)
  local sums, changed, removed = {claims = #held, starting = 0}, {}, {}
  for _, entry in ipairs(held) do
    for slot, amount in pairs((amounts_of(entry.claim, -1))) do
      local field = 'claimed.' .. slot
      sums[field] = (sums[field] or 0) + amount
      if amount < 0 or sums[field] > MOST then
        return nil
      end
    end
    sums.starting = sums.starting + (LEASED[entry.claim.state] and 1 or 0)
  end
  for field, sum in pairs(sums) do
    if whole(host[field], 0, -1) ~= sum then
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
