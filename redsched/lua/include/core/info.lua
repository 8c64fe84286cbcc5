-- id_after(): return the 40 digits after a label of INFO. A plain find, because this runs in every script and a pattern
-- costs as much as INFO.
local function id_after(info, label)
  local _, last = string.find(info, label, 1, true)
  return string.sub(info, last + 1, last + 40)
end
