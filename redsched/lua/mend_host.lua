#!lua flags=allow-oom
-- mend_host: what a host says of its claims is worked out anew from the claims themselves, all read at this instant:
-- which are on it, their number and sums, and the deadlines of those with a lease.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 host, 7 claims, then the claim of each id
-- ARGV  1 host, 2 reason, 3 lease_ms of a claim whose deadline was lost, then the ids in KEYS[7], and others that may
--       belong there
-- Reply OK (mended) | SAME (nothing was wrong) | UNKNOWN | ATTEST | CONFLICT (a claim's amount is no whole number)
--   | RETRY (KEYS[7] holds an id that is not in ARGV); epoch, now_ms
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
local host, known = read_hash(KEYS[6])
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
for _, id in ipairs(redis.call('SMEMBERS', KEYS[7])) do
  if not named[id] then
    return answer('RETRY')
  end
  counted[id] = true
end
for i = 4, #ARGV do
  local id, claim = ARGV[i], named[ARGV[i]]
  local here = claim.state and claim.state ~= 'ended' and claim.host == ARGV[1]
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
local leases = wrong_leases(cell, held, tonumber(ARGV[3]))
local listed = redis.call('ZSCORE', KEYS[3], ARGV[1])
if #changed + #removed + #missing + #gone + #leases == 0 and listed then
  return answer('SAME')
end

-- Every check is passed. From here on, only writes.
local version, told = text(whole(host.version, cell.seq, cell.seq) + 1), {'reason', ARGV[2]}
put_fields(told, changed, removed)
publish(cell, 'host', ARGV[1], version, 'mended', 0, told)
redis.call('HSET', KEYS[6], 'version', version)
in_chunks('HSET', KEYS[6], changed)
in_chunks('HDEL', KEYS[6], removed)
in_chunks('SADD', KEYS[7], missing)
in_chunks('SREM', KEYS[7], gone)
write_leases(leases)
if not listed then
  redis.call('ZADD', KEYS[3], text(whole(host.alive_until_ms, 0, 0)), ARGV[1])
end
mark_over(KEYS[6])
finish(cell)
return answer('OK')
