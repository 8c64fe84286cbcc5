-- sums_of(): what claims make of their host, by field: claimed.<slot>, claims and starting. nil where an amount is no
-- whole number, or a sum is too large. `held` has them as {claim = its hash}; with `lost` as well for one whose work,
-- which ran, is to be started again.
-- include: amounts
-- include: leased
-- include: whole
local function sums_of(held)
  local sums = {claims = #held, starting = 0}
  for _, entry in ipairs(held) do
    for slot, amount in pairs((amounts_of(entry.claim, -1))) do
      local field = 'claimed.' .. slot
      sums[field] = (sums[field] or 0) + amount
      if amount < 0 or sums[field] > MOST then
        return nil
      end
    end
    sums.starting = sums.starting + ((entry.lost or LEASED[entry.claim.state]) and 1 or 0)
  end
  return sums
end
