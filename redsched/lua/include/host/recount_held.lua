-- recount_held(): let groups count what a host holds by the zone and the labels that it has now, in memory. Returns a
-- function to be called with the changed objects before they are written; what that returns is to be called after that,
-- and marks the groups whose rule is broken.
-- include: read_hash
local function recount_held(...)
  -- include: breach
  -- include: recount_placements
  local cell, claims, zone, objects = ...
  local now = nil
  for _, claim in ipairs(claims) do
    if claim.fields.group then
      now = now or setmetatable({zone = zone}, {__index = read_hash(KEY.attributes)})
      recount_placements(claim, objects['server-group:' .. claim.fields.group], ARG.host, now)
    end
  end
  return function(changed)
    note_changed(changed)
    return function() mark_breaches(cell, changed) end
  end
end
