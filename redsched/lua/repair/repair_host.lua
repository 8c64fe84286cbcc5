#!lua flags=allow-oom
-- repair_host: recompute a host's record of its claims from the claims themselves, all read at this instant: which
-- claims are on it, their number and sums, and the deadlines of those with a lease.
-- KEYS meta changes hosts deadlines reconcile shelved host claims ...
-- ARGV host reason lease_ms ...
-- Further keys: the claim of each id. lease_ms: for a claim whose deadline was lost. Then the ids in KEY.claims, and
-- others that may belong there.
-- Reply OK (repaired) | ALREADY_DONE (nothing was wrong) | UNKNOWN | NOT_ATTESTED | CONFLICT (a claim's amount is not a
--   whole number) | RETRY (KEY.claims holds an id that is not in ARGV); epoch, now_ms
-- include: due
-- include: ids_on_host
-- include: mark_over
-- include: repair_lease
-- include: repair_sums
-- include: publish
-- include: put_fields
-- include: remove_members
local cell = fence(KEY.deadlines)
local host, known = read_hash(KEY.host)
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not known then
  return answer('UNKNOWN')
elseif host.epoch ~= cell.epoch and host.written_off ~= cell.epoch then
  return answer('NOT_ATTESTED')
end
local named, counted, missing, gone, held = {}, {}, {}, {}, {}
for i = 4, #ARGV do
  named[ARGV[i]] = load_claim(KEYS[5 + i], ARGV[i])
end
local ids = ids_on_host(named)
if not ids then
  return answer('RETRY')
end
for _, id in ipairs(ids) do
  counted[id] = true
end
for id, claim in pairs(named) do
  local here = false
  for _, placement in pairs(claim.placements) do
    if placement.host == ARG.host then
      here = true
      held[#held + 1] = {claim = claim, placement = placement}
    end
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
  return answer('ALREADY_DONE')
end

-- Every check has passed. From here on, only writes.
local version, fields = text(to_int(host.version, cell.seq, cell.seq) + 1), {'reason', ARG.reason}
put_fields(fields, changed, removed)
publish(cell, 'host', ARG.host, version, 'repaired', 0, fields)
redis.call('HSET', KEY.host, 'version', version)
in_chunks('HSET', KEY.host, changed)
in_chunks('HDEL', KEY.host, removed)
in_chunks('SADD', KEY.claims, missing)
write_leases(leases)
if not listed then
  redis.call('ZADD', KEY.hosts, text(to_int(host.alive_until_ms, 0, 0)), ARG.host)
end
mark_over(cell, 'host', ARG.host, KEY.host)
finish(cell)
remove_members('SREM', KEY.claims, gone)
return answer('OK')
