#!lua flags=allow-oom
-- renew: a fresh lease for a claim that is not active yet. An active one needs none: SAME.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox
-- ARGV  1 host, 2 id, 3 token, 4 lease_ms
-- Reply OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms, expires_at_ms ('' unless OK)
-- include: fence
-- include: read_hash
-- include: key_set
-- include: claim_state
local cell, keys = fence(KEYS[4]), key_set(6)
local claim = read_hash(keys.claim)
local words = {ended = 'GONE', ending = 'ENDING', active = 'SAME'}
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3]) or words[claim.state]
if no then
  return {no, cell.epoch, cell.now_ms, ''}
end
local expires = text(cell.now_ms + tonumber(ARGV[4]))
redis.call('HSET', keys.claim, 'expires_at_ms', expires)
redis.call('ZADD', KEYS[4], expires, ARGV[2])
return {'OK', cell.epoch, cell.now_ms, expires}
