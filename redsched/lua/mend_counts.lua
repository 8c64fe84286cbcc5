#!lua flags=allow-oom
-- mend_counts: work out anew what a server group or shared pool counts, from its claims, all read at this instant. Its
-- version shows that these are all of them: every claim that joins or leaves changes it, and it was read before the
-- claims were looked for.
-- KEYS meta changes hosts ...
--   then each claim that counts in it, and last the group or pool
-- ARGV version reason
--   version  '' where there was none
-- Reply OK (repaired) | SAME (nothing was wrong) | SETTLING (claims may still come back) | CONFLICT (an amount is not a
--   whole number) | RETRY (claims have joined or left since); epoch, now_ms
-- include: amounts
-- include: counted_in
-- include: fence
-- include: mark_over
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: things
-- include: whole
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local things = passed_things(#KEYS)
local thing, others = things[1], {}
local stored = read_hash(thing.key)
if not cell.settled then
  return answer('SETTLING')
elseif (stored.version or '') ~= ARG.version then
  return answer('RETRY')
end
thing.hash = {} -- counted as if it were empty
for i = 4, #KEYS - 1 do
  local claim = read_hash(KEYS[i])
  if claim.state and claim.state ~= 'ended' then
    local _, shared = amounts_of(claim, -1)
    for _, amount in pairs(shared) do
      if amount < 0 then
        return answer('CONFLICT')
      end
    end
    lacks(things, claim, others)
    for _, name in ipairs(others) do
      things[name] = {hash = {}, was = {}, now = {}} -- what else it counts in is not looked at
    end
    count_claim(things, claim, 1)
  end
end
for field, value in pairs(stored) do
  if field == 'members' or string.match(field, '^count%.') or string.match(field, '^claimed%.') then
    thing.now[field] = thing.now[field] or 0
    thing.was[field] = whole(value, 0, -1)
  end
end
thing.hash = nil
local changed = changed_things({thing})
if #changed == 0 then
  return answer('SAME')
end
thing.fields[#thing.fields + 1] = 'reason'
thing.fields[#thing.fields + 1] = ARG.reason
write_things(cell, changed, 'mended')
if thing.kind == 'pool' and not thing.ends then
  mark_over(thing.key)
end
finish(cell)
return answer('OK')
