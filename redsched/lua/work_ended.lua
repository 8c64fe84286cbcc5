#!lua flags=allow-oom
-- work_ended: the host's word that the work of a claim has ended by itself. The claim shows it and holds what it held:
-- what becomes of it is said by its host (fail) or its owner.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, 10 reason
-- ARGV  1 host, 2 id, 3 token, 4 what was seen, in words
-- Reply OK | SAME (said before, of this placing) | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms
-- include: change_host
-- include: claim_state
-- include: fence
-- include: key_set
-- include: publish
-- include: read_hash
-- include: reason
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local words = {ended = 'GONE', ending = 'ENDING'}
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3]) or words[claim.state]
if not no and claim.work_ended_at_ms and redis.call('HGET', KEYS[10], 'token') == ARGV[3] then
  no = 'SAME'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
change_host(cell, keys.host, ARGV[1], 'work-ended', 0, ARGV[2], {})
redis.call('HSET', keys.claim, 'work_ended_at_ms', text(cell.now_ms))
keep_reason(cell, KEYS[10], ARGV[1], ARGV[3], ARGV[4], false)
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
