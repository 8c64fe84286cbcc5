-- fits(): the fit rule in Lua; redsched/decide/fit.py has the same rule in Python, and a property test compares them.
--
-- Written as `not (a <= b)` throughout because a NaN, from a damaged field, passes every `a > b`.
local function fits(amount, slot)
  if not (slot.min <= amount) or not (amount <= slot.max) or amount % slot.step ~= 0 then
    return false
  end
  return not not (amount <= slot.capacity - slot.claimed - slot.external)
end
