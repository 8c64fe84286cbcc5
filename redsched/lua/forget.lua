#!lua flags=allow-oom
-- forget: remove a host. Refused while it holds claims, unless forced: then they end with it, as void.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 host, 7 claims, 8 inbox, 9 facts, 10 leaving,
--       11 removed, then the claim of each id, then groups, shared pools, gangs and quotas
-- ARGV  1 host, 2 force (0 or 1), then the ids in KEYS[7]
-- Reply OK | UNKNOWN | HELD (it holds claims) | RETRY (KEYS[7] holds an id that is not in ARGV, or the groups, pools,
--   gangs and quotas that follow are not in KEYS); epoch, now_ms
-- include: counted_in
-- include: fence
-- include: finish_declared
-- include: gang
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: remember_removed
-- include: settle
-- include: things
-- include: tombstone
local cell = fence()
local host, known = read_hash(KEYS[6])
local ids = redis.call('SMEMBERS', KEYS[7])
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not known then
  return answer('UNKNOWN')
elseif #ids > 0 and ARGV[2] ~= '1' then
  return answer('HELD')
end
local key_of, claims, things, retry = {}, {}, passed_things(10 + #ARGV), answer('RETRY')
for i = 3, #ARGV do
  key_of[ARGV[i]] = KEYS[9 + i]
end
for _, id in ipairs(ids) do
  if not key_of[id] then
    return answer('RETRY')
  end
  local claim = read_hash(key_of[id])
  if claim.host == ARGV[1] then
    claims[id] = claim
    lacks(things, claim, retry)
  end
end
if #retry > 3 then
  return retry
end
for _, claim in pairs(claims) do
  count_claim(things, claim, -1)
end
local changed = changed_things(things)
publish(cell, 'host', ARGV[1], text(tonumber(host.version) + 1), 'removed', #changed, {})
write_things(cell, changed, 'void')
for id, claim in pairs(claims) do
  leave_gang(cell, things, claim, id, 'void')
  bury(cell, key_of[id], id, claim, 'void')
end
redis.call('DEL', KEYS[6], KEYS[7], KEYS[8], KEYS[9])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('SREM', KEYS[10], ARGV[1])
count_heard(cell, host)
if ARGV[2] == '1' then
  remember_removed(cell, KEYS[11])
end
finish_declared(cell) -- another host may come by its name
return answer('OK')
