-- to_int(): a field as a number from 0 to 2^53-1; `unreadable` if somebody wrote something else there by hand. Callers
-- pass a value that admits nothing, as redsched/cache/columns.py does: tonumber reads "nan", "-5" and "1e3". An empty
-- field counts as absent, as in the feed.
local MOST = 9007199254740991

local function to_int(value, absent, unreadable)
  if not value or value == '' then
    return absent
  elseif value == '0' then
    return 0 -- the most frequent one, at a tenth of the cost
  end
  local number = #value <= 16 and string.find(value, '^%d+$') and tonumber(value)
  return number and number <= MOST and number or unreadable
end
