#!lua flags=allow-oom
-- mend_host: work out anew what a host says of its claims, from the claims themselves, all read at this instant: which
-- are on it, their number and sums, and the deadlines of those with a lease.
-- KEYS meta changes hosts deadlines chores host claims ...
--   then the claim of each id
-- ARGV host reason lease_ms ...
--   lease_ms  for a claim whose deadline was lost
--   then the ids in the host's set of claims, and others that may belong there
-- Reply OK (repaired) | SAME (nothing was wrong) | UNKNOWN | ATTEST | CONFLICT (an amount of a claim is not a whole
--   number) | RETRY (the set of claims holds an id that is not in ARGV); epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: mark_over
-- include: mend_lease
-- include: mend_sums
-- include: publish
-- include: put_fields
-- include: read_hash
-- include: whole
local cell = fence()
local host, known = read_hash(KEY.host)
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not known then
  return answer('UNKNOWN')
elseif host.epoch ~= cell.epoch and host.written_off ~= cell.epoch then
  return answer('ATTEST')
end
local named, counted, missing, gone, held = {}, {}, {}, {}, {}
for i = 4, #ARGV do
  named[ARGV[i]] = read_hash(KEYS[4 + i])
end
for _, id in ipairs(redis.call('SMEMBERS', KEY.claims)) do
  if not named[id] then
    return answer('RETRY')
  end
  counted[id] = true
end
for i = 4, #ARGV do
  local id, claim = ARGV[i], named[ARGV[i]]
  local here = claim.state and claim.state ~= 'ended' and claim.host == ARG.host
  if here then
    held[#held + 1] = {id = id, key = KEYS[4 + i], claim = claim}
  end
  if here and not counted[id] then
    missing[#missing + 1] = id
  elseif counted[id] and not here then
    gone[#gone + 1] = id
  end
end
local changed, removed = differing_sums(host, held)
if not changed then
  return answer('CONFLICT')
end
local leases = wrong_leases(cell, held, tonumber(ARG.lease_ms))
local listed = redis.call('ZSCORE', KEY.hosts, ARG.host)
if #changed + #removed + #missing + #gone + #leases == 0 and listed then
  return answer('SAME')
end

-- Every check is passed. From here on, only writes.
local version, told = text(whole(host.version, cell.seq, cell.seq) + 1), {'reason', ARG.reason}
put_fields(told, changed, removed)
publish(cell, 'host', ARG.host, version, 'mended', 0, told)
redis.call('HSET', KEY.host, 'version', version)
in_chunks('HSET', KEY.host, changed)
in_chunks('HDEL', KEY.host, removed)
in_chunks('SADD', KEY.claims, missing)
in_chunks('SREM', KEY.claims, gone)
write_leases(leases)
if not listed then
  redis.call('ZADD', KEY.hosts, text(whole(host.alive_until_ms, 0, 0)), ARG.host)
end
mark_over(KEY.host)
finish(cell)
return answer('OK')
