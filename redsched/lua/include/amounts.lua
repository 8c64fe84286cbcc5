-- amounts_of(): slot -> amount of a claim's hash, of its host and of shared pools; `unreadable` for one that is no
-- whole number.
-- include: whole
local function amounts_of(claim, unreadable)
  local own, shared = {}, {}
  for field, value in pairs(claim) do
    local slot = string.match(field, '^amount%.(.+)$')
    if slot then
      local amounts = string.sub(slot, 1, 5) == 'pool:' and shared or own
      amounts[slot] = whole(value, unreadable, unreadable)
    end
  end
  return own, shared
end
