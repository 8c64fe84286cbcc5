-- fits(): Lua's reading of the one fit; redsched/decide/fit.py is its twin and a property test holds them together.
--
-- Written as `not (a <= b)` throughout because a NaN, from a field that somebody damaged, passes every `a > b`.
local function fits(amount, slot)
  if not (slot.min <= amount) or not (amount <= slot.max) or amount % slot.step ~= 0 then
    return false
  end
  return not not (amount <= slot.capacity - slot.claimed - slot.external)
end
