#!lua flags=allow-oom
-- mend_gone_host: what is left of a host that is not there any more goes: its inbox, its facts, and its claims, which
-- end as void. What a host had taken up may still run, so that only an operator ends it.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 host, 7 claims, 8 inbox, 9 facts, 10 removed, then the
--       claim of each id, then groups, shared pools, gangs and quotas
-- ARGV  1 host, 2 reason, 3 operator (1: what was taken up ends too), then the ids in KEYS[7], and others that name
--       the host
-- Reply OK | SAME (it is there, or nothing is left) | HELD (claims that were taken up are left)
--   | SETTLING (it may come back); epoch, now_ms
--   or RETRY (KEYS[7] holds an id that is not in ARGV, or the groups, pools, gangs and quotas that
--   follow are not in KEYS)
-- include: counted_in
-- include: fence
-- include: gang
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
if redis.call('EXISTS', KEYS[6]) == 1 then
  return answer('SAME')
elseif not cell.settled then
  return answer('SETTLING')
end
local things, retry, named, ending, left = passed_things(8 + #ARGV), answer('RETRY'), {}, {}, false
for i = 4, #ARGV do
  named[ARGV[i]] = true
  local claim = read_hash(KEYS[7 + i])
  if claim.host == ARGV[1] and claim.state ~= 'ended' then
    if claim.state == 'claimed' or ARGV[3] == '1' then
      ending[#ending + 1] = {id = ARGV[i], key = KEYS[7 + i], claim = claim}
      lacks(things, claim, retry)
    else
      left = true
    end
  end
end
for _, id in ipairs(redis.call('SMEMBERS', KEYS[7])) do
  if not named[id] then
    return answer('RETRY')
  end
end
if #retry > 3 then
  return retry
end
local leftovers = redis.call('EXISTS', KEYS[8]) + redis.call('EXISTS', KEYS[9])
if not left then
  leftovers = leftovers + redis.call('EXISTS', KEYS[7])
end
if #ending + leftovers == 0 and not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  return answer(left and 'HELD' or 'SAME')
end

-- Every check is passed. From here on, only writes.
for _, entry in ipairs(ending) do
  count_claim(things, entry.claim, -1)
end
local changed = changed_things(things)
for number, entry in ipairs(ending) do
  publish(cell, 'host', ARGV[1], cell.seq + 1, 'void', #ending - number + 1 + #changed,
    {'claim', entry.id, 'reason', ARGV[2]})
end
publish(cell, 'host', ARGV[1], cell.seq + 1, 'removed', #changed, {'reason', ARGV[2]})
write_things(cell, changed, 'void')
for _, entry in ipairs(ending) do
  redis.call('SREM', KEYS[7], entry.id)
  leave_gang(cell, things, entry.claim, entry.id, 'void')
  bury(cell, entry.key, entry.id, entry.claim, 'void')
end
if ARGV[3] == '1' then
  remember_removed(cell, KEYS[10])
end
redis.call('DEL', KEYS[8], KEYS[9])
redis.call('ZREM', KEYS[3], ARGV[1])
if not left then
  redis.call('DEL', KEYS[7])
end
finish(cell)
return answer(left and 'HELD' or 'OK')
