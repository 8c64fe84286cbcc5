-- Functions for changing the amounts of a placement. Amounts are tables slot -> amount, of its host and of shared pools
-- alike.
local function amounts_in_argv(first)
  local amounts = {}
  for i = first, #ARGV, 2 do
    amounts[ARGV[i]] = tonumber(ARGV[i + 1])
  end
  return amounts
end

local function equal_amounts(a, b)
  for slot, amount in pairs(a) do
    if b[slot] ~= amount then
      return false
    end
  end
  for slot in pairs(b) do
    if not a[slot] then
      return false
    end
  end
  return true
end

local function larger_of(a, b)
  local both = {}
  for slot, amount in pairs(a) do
    both[slot] = amount
  end
  for slot, amount in pairs(b) do
    both[slot] = math.max(both[slot] or 0, amount)
  end
  return both
end
