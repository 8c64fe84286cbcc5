#!lua flags=allow-oom
-- mend_counts: what a server group, shared pool or quota counts is worked out anew from its claims, all read at this
-- instant. That these are all of them its version shows, which every claim that joins or leaves moves: it was read
-- before they were looked for.
-- KEYS  1 meta, 2 changes, 3 hosts, then each claim that counts in it, and last the group, pool or quota
-- ARGV  1 its version (of a quota its seq) when the claims were looked for ('' where there was none), 2 reason
-- Reply OK (mended) | SAME (nothing was wrong) | SETTLING (its claims may still come back) | CONFLICT (an amount is no
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
elseif (thing.kind == 'quota' and stored.seq or stored.version or '') ~= ARGV[1] then
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
  if field == 'members' or string.match(field, '^count%.') or string.match(field, '^claimed%.')
      or string.match(field, '^used%.') then
    thing.now[field] = thing.now[field] or 0
    thing.was[field] = whole(value, 0, -1)
  end
end
thing.hash = thing.kind == 'quota' and stored or nil
local changed = changed_things({thing})
if #changed.quotas > 0 then
  changed = {thing, quotas = {}} -- a repair is told, unlike what claims use
end
if #changed == 0 then
  return answer('SAME')
end
thing.fields[#thing.fields + 1] = 'reason'
thing.fields[#thing.fields + 1] = ARGV[2]
write_things(cell, changed, 'mended')
if thing.kind == 'pool' and not thing.ends then
  mark_over(thing.key)
end
finish(cell)
return answer('OK')
