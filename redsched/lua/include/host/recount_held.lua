-- recount_held(): let groups count what a host holds by the zone and the labels that it has now, in memory. Returns a
-- function to be called when the groups are written: it marks those whose rule is broken.
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
  note_breaches(objects)
  return function() mark_breaches(cell, objects) end
end
