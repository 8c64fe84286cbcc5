-- definition_tag(): return the tag of the declared fields of an object, as redsched/store/codec/tags.py computes it;
-- nil if none of its fields is declared.
-- include: definition
local function definition_tag(object)
  local entries = {}
  for field, value in pairs(object) do
    if is_definition(field) then
      entries[#entries + 1] = redis.sha1hex(field .. '\0' .. value)
    end
  end
  -- Compared as numbers, because the server sorts strings by its locale.
  table.sort(entries, function(one, other)
    return tonumber(string.sub(one, 1, 12), 16) < tonumber(string.sub(other, 1, 12), 16)
  end)
  return entries[1] and redis.sha1hex(table.concat(entries))
end
