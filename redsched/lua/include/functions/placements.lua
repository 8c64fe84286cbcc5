-- placements_of(): return the prefixes of the fields of a claim's placements: '' for the main one. amounts_of(): return
-- what a placement holds, by slot.
local function placements_of(claim)
  local prefixes = {}
  for field in pairs(claim) do
    prefixes[#prefixes + 1] = string.match(field, '^(placement%.%d+%-%w+%.%d+%.)host$')
  end
  table.sort(prefixes)
  if claim.host then
    table.insert(prefixes, 1, '')
  end
  return prefixes
end

local function amounts_of(claim, prefix)
  local amounts, first = {}, prefix .. 'amount.'
  for field, amount in pairs(claim) do
    if string.sub(field, 1, #first) == first then
      amounts[string.sub(field, #first + 1)] = amount
    end
  end
  return amounts
end
