#!lua flags=allow-oom
-- repair_counts: recompute the counts of a server group, shared pool or quota from its claims, all read at this
-- instant. The caller reads the version of the object before it searches for the claims, and passes it: every claim
-- that joins or leaves raises the version, so an unchanged one proves that the list of claims is complete.
-- KEYS meta changes hosts ...
-- ARGV version reason ...
-- Further keys: each claim that counts in it, and last the group, pool or quota. version: that of the object (of a
-- quota its seq) before the claims were searched for ('' if there was none). Then the ids of the claims.
-- Reply OK (repaired) | ALREADY_DONE (nothing was wrong) | SETTLING (hosts may still restore its claims) | CONFLICT (an
--   amount is not a whole number, or a sum exceeds the largest amount) | RETRY (claims have joined or left since);
--   epoch, now_ms
-- include: breach
-- include: counters
-- include: mark_over
-- include: passed
-- include: publish
-- include: objects
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local object = passed(#KEYS)[1]
local stored = read_hash(object.key)
if not cell.settled then
  return answer('SETTLING')
elseif (object.kind == 'quota' and stored.seq or stored.version or '') ~= ARG.version then
  return answer('RETRY')
end
for i = 4, #KEYS - 1 do
  local claim = load_claim(KEYS[i], ARGV[i - 1])
  for _, placement in pairs(claim.placements) do
    if placement.unreadable then
      return answer('CONFLICT')
    end
  end
  for field, number in pairs(counters(claim)[object.name] or {}) do
    object.now[field] = (object.now[field] or 0) + number
  end
end
for _, number in pairs(object.now) do
  if number > MOST then
    return answer('CONFLICT')
  end
end
for field, value in pairs(stored) do
  if field == 'members' or string.match(field, '^count%.') or string.match(field, '^claimed%.')
      or string.match(field, '^used%.') then
    object.now[field] = object.now[field] or 0
    object.was[field] = to_int(value, 0, -1)
  end
end
object.hash = object.kind == 'quota' and stored or nil
local changed = changed_objects({object})
if #changed.quotas > 0 then
  changed = {object, quotas = {}} -- the feed reports the repair of a quota, although it does not report usage
end
if #changed == 0 then
  return answer('ALREADY_DONE')
end
object.fields[#object.fields + 1] = 'reason'
object.fields[#object.fields + 1] = ARG.reason
note_changed({object})
write_objects(cell, changed, 'repaired')
mark_breaches(cell, {object})
if object.kind == 'pool' and not object.ends then
  mark_over(cell, 'pool', object.own_name, object.key)
end
finish(cell)
return answer('OK')
