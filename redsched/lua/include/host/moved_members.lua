-- moved_members(): recount the members of groups on a host whose zone or labels change with a report, by recount.lua.
-- Returns nil if none of these change, or the host has no claims. `host` and `attributes` are those before the report,
-- `changed` is as in the feed.
-- include: fence
local COUNTED_BY = {zone = true, label = true}

local function recounted(...)
  -- include: recount
  return recount(...)
end

local function moved_members(cell, host, attributes, changed)
  local fields, moved = setmetatable({zone = host.zone}, {__index = attributes}), false
  for i = 1, #changed, 2 do
    if COUNTED_BY[string.match(changed[i], '^[^.]+')] then
      fields[changed[i]], moved = changed[i + 1], true
    end
  end
  if not moved or redis.call('EXISTS', KEY.claims) == 0 then
    return nil
  end
  return recounted(cell, ARG.host, fields, 10)
end
