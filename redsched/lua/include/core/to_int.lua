-- to_int(): a field as a number from 0 to 2^53-1; `unreadable` where somebody wrote something else there by hand.
-- Callers pass what lets nothing in, as redsched/cache/columns.py does: "nan", "-5" and "1e3" are all read by tonumber.
-- An empty field is one that is not there, as in the feed.
local MOST = 9007199254740991

local function to_int(value, absent, unreadable)
  if not value or value == '' then
    return absent
  end
  local number = #value <= 16 and string.find(value, '^%d+$') and tonumber(value)
  return number and number <= MOST and number or unreadable
end
