-- recount(): count the members of groups on a host by the zone and the labels that it has now, in memory; `fields` has
-- both. Returns `lacking`, the names of missing keys; or `number`, that of the feed entries to follow the host's, and
-- write(), which writes the claims and groups. It reads all claims of the host.
-- include: breach
-- include: claim_record
-- include: counters
-- include: fence
-- include: object_counts
-- include: objects
-- include: passed
-- include: recount_placements
local function recount_claim(claim, group, host, fields)
  local before, changed = counters(claim), false
  recount_placements(claim, group, host, fields)
  for field, by in pairs(difference(before, counters(claim))[group.name] or {}) do
    add(group, field, by)
    changed = true
  end
  return changed
end

local function find_members(objects)
  local lacking, members = {}, {}
  for _, id in ipairs(redis.call('SMEMBERS', KEY.claims)) do
    local claim = needs(objects, lacking, 'claim:' .. id)
    local name = claim and redis.call('HGET', claim.key, 'group')
    local group = name and name ~= '' and needs(objects, lacking, 'server-group:' .. name)
    members[#members + 1] = group and {id = id, key = claim.key, group = group} or nil
  end
  return members, lacking
end

local function write_recounted(cell, claims, groups)
  note_changed(groups)
  write_objects(cell, groups, 'recounted')
  for _, claim in ipairs(claims) do
    write_claim_record(claim)
  end
  mark_breaches(cell, groups)
end

local function recount(cell, host, fields, first)
  local members, lacking = find_members(passed(first))
  if #lacking > 0 then
    return {lacking = lacking}
  end
  local claims, groups = {}, {}
  for _, member in ipairs(members) do
    local claim, group = load_claim(member.key, member.id), member.group
    if recount_claim(claim, group, host, fields) then
      claims[#claims + 1] = claim
      if not groups[group] then
        groups[group], groups[#groups + 1] = true, group
      end
    end
  end
  local changed = changed_objects(groups)
  return {number = #changed, write = function() write_recounted(cell, claims, changed) end}
end
