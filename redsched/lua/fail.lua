#!lua flags=allow-oom
-- fail: the work could not be started. From its host it frees at once (the host has cleaned up); from anyone else only
-- what no host has taken up, and the rest is `ending`. The host's word counts in its `failures`. Where nothing is to
-- succeed it, whoever says so is told that this is the end.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then groups, shared
--       pools, gangs and quotas
-- ARGV  1 host, 2 id, 3 token, 4 by_host (0 or 1)
-- Reply OK (freed) | ENDING | SAME (had failed) | GONE (ended otherwise) | STALE | UNKNOWN | ATTEST; epoch, now_ms
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas that it counts in and whose keys are missing
-- include: claim_state
-- include: fence
-- include: give_back
-- include: key_set
-- include: passed_things
-- include: read_hash
-- include: whole
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3])
if not no and claim.state == 'ended' then
  no = claim.why == 'failed' and 'SAME' or 'GONE'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
local by_host, also = ARGV[4] == '1', {}
if by_host then
  also = {'failures', text(math.min(MOST, whole(redis.call('HGET', keys.host, 'failures'), 0, 0) + 1))}
end
local reply = give_back(cell, keys, claim, ARGV[2], 'failed', by_host, also, passed_things(10))
-- One that its owner has given up is over as it is, and one that is being shelved may be placed again.
local ends = claim.why ~= 'released' and claim.why ~= 'shelved' and not claim.next
if reply[1] ~= 'RETRY' and not by_host and ends then
  redis.call('HSET', keys.claim, 'final', '1')
end
return reply
