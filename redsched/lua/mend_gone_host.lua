#!lua flags=allow-oom
-- mend_gone_host: delete what is left of a host that is not there any more: its inbox, its facts, and its claims, which
-- end as void. The work of a claim that the host had taken up may still run, so only an operator ends such a claim.
-- KEYS meta changes hosts deadlines chores host claims inbox facts removed ...
--   then the claim of each id, then groups, shared pools and gangs
-- ARGV host reason operator ...
--   operator  1: end also claims that the host had taken up
--   then the ids in the host's set of claims, and others that name the host
-- Reply OK | SAME (the host is there, or nothing is left of it) | HELD (claims that it had taken up are left)
--   | SETTLING (it may come back); epoch, now_ms
--   or RETRY (the set of claims holds an id that is not in ARGV, or the groups, pools and gangs that follow are not in
--   KEYS)
-- include: counted_in
-- include: fence
-- include: gang
-- include: in_chunks
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: remember_removed
-- include: things
-- include: tombstone
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if redis.call('EXISTS', KEY.host) == 1 then
  return answer('SAME')
elseif not cell.settled then
  return answer('SETTLING')
end
local things, retry, named, ending, left = passed_things(8 + #ARGV), answer('RETRY'), {}, {}, false
for i = 4, #ARGV do
  named[ARGV[i]] = true
  local claim = read_hash(KEYS[7 + i])
  if claim.host == ARG.host and claim.state ~= 'ended' then
    if claim.state == 'claimed' or ARG.operator == '1' then
      ending[#ending + 1] = {id = ARGV[i], key = KEYS[7 + i], claim = claim}
      lacks(things, claim, retry)
    else
      left = true
    end
  end
end
local listed = {}
for _, id in ipairs(redis.call('SMEMBERS', KEY.claims)) do
  if not named[id] then
    return answer('RETRY')
  end
  listed[id] = true
end
if #retry > 3 then
  return retry
end
local leftovers = redis.call('EXISTS', KEY.inbox) + redis.call('EXISTS', KEY.facts)
if not left then
  leftovers = leftovers + redis.call('EXISTS', KEY.claims)
end
if #ending + leftovers == 0 and not redis.call('ZSCORE', KEY.hosts, ARG.host) then
  return answer(left and 'HELD' or 'SAME')
end

-- Every check is passed. From here on, only writes.
for _, entry in ipairs(ending) do
  count_claim(things, entry.claim, -1)
end
local changed = changed_things(things)
for number, entry in ipairs(ending) do
  publish(cell, 'host', ARG.host, cell.seq + 1, 'void', #ending - number + 1 + #changed,
    {'claim', entry.id, 'reason', ARG.reason})
end
publish(cell, 'host', ARG.host, cell.seq + 1, 'removed', #changed, {'reason', ARG.reason})
write_things(cell, changed, 'void')
local unlisted = {}
for _, entry in ipairs(ending) do
  unlisted[#unlisted + 1] = listed[entry.id] and entry.id or nil
  leave_gang(cell, things, entry.claim, entry.id, 'void')
  bury(cell, entry.key, entry.id, entry.claim, 'void')
end
if ARG.operator == '1' then
  remember_removed(cell, KEY.removed)
end
redis.call('DEL', KEY.inbox, KEY.facts)
redis.call('ZREM', KEY.hosts, ARG.host)
if left then
  in_chunks('SREM', KEY.claims, unlisted)
else
  redis.call('DEL', KEY.claims)
end
finish(cell)
return answer(left and 'HELD' or 'OK')
