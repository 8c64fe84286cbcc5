-- recount_placements(): let a claim's placements on a host be counted in their group by the zone and the labels that
-- the host has now; `now` has both, named as in the host's hashes. A group that is not passed, or no longer
-- declared, counts by zone, and by what it has counted each placement by.
-- include: group_rule
local function topologies_of(group, placement)
  if group and group.declared == nil then
    group.declared = read_group(group) and true or false
  end
  if group and group.declared then
    return group.topologies
  end
  local found = {'zone'}
  for by in pairs(placement.counted) do
    found[#found + 1] = by
  end
  return found
end

local function recount_placements(claim, group, on, now)
  for _, placement in pairs(claim.placements) do
    if placement.host == on then
      local counted = {}
      for _, by in ipairs(topologies_of(group, placement)) do
        local domain = now[by == 'zone' and 'zone' or 'label.' .. string.sub(by, 7)]
        counted[by] = domain ~= '' and domain or nil
      end
      placement.counted = counted
    end
  end
end
