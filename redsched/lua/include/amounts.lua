-- amounts_of(): slot -> amount of a claim's hash.
local function amounts_of(claim)
  local amounts = {}
  for field, value in pairs(claim) do
    local slot = string.match(field, '^amount%.(.+)$')
    if slot then
      amounts[slot] = tonumber(value)
    end
  end
  return amounts
end
