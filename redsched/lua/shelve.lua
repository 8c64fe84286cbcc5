#!lua flags=allow-oom
-- shelve: the owner gives a claim back and wants it again later. As release, but what is left of it stays until it has
-- been placed again (a claim that succeeds it), or is forgotten.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, 10 shelved, then groups,
--       shared pools, gangs and quotas
-- ARGV  1 host, 2 id, 3 token
-- Reply OK (freed) | ENDING | SAME (it is shelved) | GONE (it ended, or ends, otherwise) | STALE | UNKNOWN | ATTEST
--   | MOVING (it is itself still to succeed another); epoch, now_ms
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas that it counts in and whose keys are missing
-- include: claim_state
-- include: fence
-- include: give_back
-- include: key_set
-- include: passed_things
-- include: read_hash
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3])
if not no and (claim.state == 'ending' or claim.state == 'ended') then
  local words = {ending = 'ENDING', ended = 'SAME'}
  no = claim.why == 'shelved' and words[claim.state] or 'GONE'
elseif not no and claim.former then
  no = 'MOVING'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
local reply = give_back(cell, keys, claim, ARGV[2], 'shelved', false, {}, passed_things(11))
if reply[1] ~= 'RETRY' then
  redis.call('SADD', KEYS[10], ARGV[2])
end
return reply
