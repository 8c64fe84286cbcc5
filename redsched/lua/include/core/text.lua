-- text(): return a whole number as text. `%d` is exact for all numbers used here if a C long has 64 bits, and costs a
-- third of `%.0f`.
local function text(number)
  return string.format('%d', number)
end
