-- amounts_of(): slot -> amount of a claim's hash; `unreadable` for one that is no whole number.
local function amounts_of(claim, unreadable)
  local amounts = {}
  for field, value in pairs(claim) do
    local slot = string.match(field, '^amount%.(.+)$')
    if slot then
      amounts[slot] = whole(value, unreadable, unreadable)
    end
  end
  return amounts
end
