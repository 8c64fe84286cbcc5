#!lua
-- restore: import the claims of an exported cell. Their hosts must not have attested to this epoch: what a host has
-- attested is newer than the export.
-- KEYS meta changes hosts deadlines reconcile shelved ...
-- ARGV lease_ms claims ...
-- Further keys: the claim of each, then host, claims and inbox of the hosts that they are on, and what they count in;
-- passed.lua. claims: how many follow; each as id, number of values, field, value ...
-- Reply OK | UNKNOWN (a living claim names a host that does not exist) | IN_USE (a host has attested) | CONFLICT (an
--   amount is not a whole number, or a sum would exceed the largest amount); epoch, now_ms, then the ids that the store
--   already has, which are left unchanged
--   or RETRY, epoch, now_ms and the names of missing keys
-- include: beyond_range
-- include: breach
-- include: clock_shift
-- include: commit
local cell = fence(KEY.deadlines)
local function answer(outcome, rest)
  return {outcome, cell.epoch, cell.now_ms, unpack(rest or {})}
end
local expected, at, claims, there, lacking = tonumber(ARG.claims), 2, {}, {}, {}
local objects = passed(7 + expected)
for number = 1, expected do
  local id, values, fields = ARGV[at + 1], tonumber(ARGV[at + 2]), {}
  for i = at + 3, at + 2 + values, 2 do
    fields[ARGV[i]] = ARGV[i + 1]
  end
  at = at + 2 + values
  local claim = parse_claim(id, KEYS[6 + number], fields, true)
  claim.stored, claim.exists = {}, false
  -- The deadlines of an archive count as times of the cell's present clock.
  local shift_ms = claim.fields.runtime_deadline_ms and clock_shift() or 0
  claim.fields.clock_shift_ms = shift_ms ~= 0 and text(shift_ms) or nil
  if redis.call('EXISTS', claim.key) == 1 then
    there[#there + 1] = id
  else
    claims[#claims + 1] = claim
    for _, placement in pairs(claim.placements) do
      needs(objects, lacking, 'host:' .. placement.host)
    end
  end
end
if #lacking > 0 then
  return answer('RETRY', lacking)
end
for _, claim in ipairs(claims) do
  for _, placement in pairs(claim.placements) do
    local host = redis.call('HMGET', objects['host:' .. placement.host].key, 'version', 'epoch')
    if not host[1] then
      return answer('UNKNOWN')
    elseif host[2] == cell.epoch then
      return answer('IN_USE')
    elseif placement.unreadable then
      return answer('CONFLICT')
    end
    placement.op, placement.inbox_id = 'restored', nil
    placement.expires_at_ms = LEASED[placement.state] and text(cell.now_ms + tonumber(ARG.lease_ms)) or nil
  end
end
local beyond
note_breaches(objects)
lacking, beyond = commit(cell, claims, objects, new_due(), beyond_range)
if beyond then
  return answer('CONFLICT')
elseif lacking then
  return answer('RETRY', lacking)
end
mark_breaches(cell, objects)
finish(cell)
return answer('OK', there)
