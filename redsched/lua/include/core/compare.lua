-- compare(): compute the difference between a hash and the new values in ARGV[first] to ARGV[last], a flat list of
-- field, value. `owns` decides which fields of the hash are deleted when they are not among the new ones. Returns two
-- flat lists, to set and to delete, and adds both to `changed` in the form of the feed: '' for a deleted field.
local function append(list, field, value)
  list[#list + 1] = field
  list[#list + 1] = value
end

local function compare(before, first, last, owns, changed)
  local new, set, gone = {}, {}, {}
  for i = first, last, 2 do
    new[ARGV[i]] = true
    if before[ARGV[i]] ~= ARGV[i + 1] then
      append(set, ARGV[i], ARGV[i + 1])
      append(changed, ARGV[i], ARGV[i + 1])
    end
  end
  for field in pairs(before) do
    if not new[field] and owns(field) then
      gone[#gone + 1] = field
      append(changed, field, '')
    end
  end
  return set, gone
end
