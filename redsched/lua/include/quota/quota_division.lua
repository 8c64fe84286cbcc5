-- is_of_division(): return whether a field of a quota belongs to this cell's part in a division of its limits over
-- several cells.
local OF_DIVISION = {division = true, closed_at_ms = true, share_epoch = true, share = true, given = true,
  handed = true, taken = true, heard = true}

local function is_of_division(field)
  return OF_DIVISION[string.match(field, '^[^.]+')]
end
