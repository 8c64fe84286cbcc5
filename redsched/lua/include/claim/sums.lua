-- sums_of(): return the sums of a host's placements, by field: claimed.<slot>, claims and starting; nil if an amount is
-- not a whole number, or a sum is too large. `held`: {placement = ...} of each.
-- include: leased
-- include: to_int
local function sums_of(held)
  local sums = {claims = #held, starting = 0}
  for _, entry in ipairs(held) do
    if entry.placement.unreadable then
      return nil
    end
    for slot, amount in pairs(entry.placement.amounts) do
      if string.sub(slot, 1, 5) ~= 'pool:' then
        local field = 'claimed.' .. slot
        sums[field] = (sums[field] or 0) + amount
        if sums[field] > MOST then
          return nil
        end
      end
    end
    sums.starting = sums.starting + (LEASED[entry.placement.state] and 1 or 0)
  end
  return sums
end
