#!lua flags=allow-oom
-- release: the owner gives the claim back. Frees at once what no host has taken up, or with force; else it is `ending`.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then groups and shared
--       pools
-- ARGV  1 host, 2 id, 3 token ('' for any), 4 force (0 or 1)
-- Reply OK (freed) | ENDING | SAME (had ended) | STALE | UNKNOWN | ATTEST; epoch, now_ms
--   or RETRY, epoch, now_ms and the groups and pools that it counts in and whose keys are missing
-- include: fence
-- include: publish
-- include: read_hash
-- include: claim_state
-- include: whole
-- include: in_chunks
-- include: things
-- include: amounts
-- include: counted_in
-- include: given_back
-- include: change_host
-- include: tombstone
-- include: hint
-- include: take_hint
-- include: end_claim
-- include: begin_ending
-- include: give_back
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3] ~= '' and ARGV[3] or nil)
if not no and claim.state == 'ended' then
  no = 'SAME'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
return give_back(cell, keys, claim, ARGV[2], 'released', ARGV[4] == '1', {})
