-- to_int(): return a field as a number from 0 to 2^53-1; `unreadable` if it was overwritten by hand with something
-- else. As `unreadable`, callers pass a value with which nothing fits, as redsched/cache/columns.py does: tonumber
-- would accept "nan", "-5" and "1e3". An empty field counts as absent, as in the feed.
local MOST = 9007199254740991

local function to_int(value, absent, unreadable)
  if not value or value == '' then
    return absent
  elseif value == '0' then
    return 0 -- the most frequent one, at a tenth of the cost
  end
  local number = #value <= 16 and string.find(value, '^%d+$') and value + 0 -- at half the cost of tonumber
  return number and number <= MOST and number or unreadable
end
