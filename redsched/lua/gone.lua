#!lua flags=allow-oom
-- gone: the host's word that a claim's work has ended. The amounts return together with its new external usage.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then groups, shared
--       pools, gangs and quotas
-- ARGV  1 host, 2 id, 3 token, 4 why (used unless the claim is ending, which has its own),
--       5 id of the inbox entry or '', then slot, external amount ...
-- Reply OK | SAME (had ended) | STALE | UNKNOWN | ATTEST; epoch, now_ms
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas that it counts in and whose keys are missing
-- include: claim_state
-- include: counted_in
-- include: end_claim
-- include: fence
-- include: key_set
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: take_hint
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3])
if no == 'ATTEST' then
  return {no, cell.epoch, cell.now_ms}
end
if no or claim.state == 'ended' then
  take_hint(keys.inbox, ARGV[5])
  return {no or 'SAME', cell.epoch, cell.now_ms}
end
local things, retry = passed_things(10), {'RETRY', cell.epoch, cell.now_ms}
if lacks(things, claim, retry) then
  return retry
end
local external = {}
for i = 6, #ARGV, 2 do
  external[#external + 1] = 'external.' .. ARGV[i]
  external[#external + 1] = ARGV[i + 1]
end
end_claim(cell, keys, claim, ARGV[2], claim.state == 'ending' and claim.why or ARGV[4], external, things)
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
