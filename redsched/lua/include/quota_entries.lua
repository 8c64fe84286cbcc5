-- Entries of a ledger: what one claim takes of its project's quota, by class, with `claims` among the classes.
-- read_entry(): an entry, and what it takes now. change(): note in `sums` what it is to take instead.
-- include: read_hash
-- include: whole
local function read_entry(key)
  local entry, takes = read_hash(key), {}
  for field, value in pairs(entry) do
    local class = string.match(field, '^amount%.(.+)$')
    if class then
      takes[class] = whole(value, 0, 0)
    end
  end
  return entry, takes
end

local function change(sums, before, after)
  for class, amount in pairs(after) do
    sums[class] = (sums[class] or 0) + amount
  end
  for class, amount in pairs(before) do
    sums[class] = (sums[class] or 0) - amount
  end
end
