#!lua flags=allow-oom
-- accept: the host has taken the claim up and is about to start its work. claimed -> starting, with a fresh lease.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox
-- ARGV  1 host, 2 id, 3 token, 4 lease_ms, 5 id of the inbox entry, or ''
-- Reply OK | SAME (was taken up before) | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms, state
-- In every case but ATTEST the hint has served, and is deleted.
-- include: fence
-- include: read_hash
-- include: key_set
-- include: claim_state
-- include: take_hint
local cell, keys = fence(KEYS[4]), key_set(6)
local claim = read_hash(keys.claim)
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms, claim.state or ''}
end
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3])
if no == 'ATTEST' then
  return answer(no)
end
if no or claim.state ~= 'claimed' then
  take_hint(keys.inbox, ARGV[5])
  local words = {ended = 'GONE', ending = 'ENDING', starting = 'SAME', active = 'SAME'}
  return answer(no or words[claim.state])
end
local expires = text(cell.now_ms + tonumber(ARGV[4]))
redis.call('HSET', keys.claim, 'state', 'starting', 'expires_at_ms', expires)
redis.call('ZADD', KEYS[4], expires, ARGV[2])
take_hint(keys.inbox, claim.inbox_id)
redis.call('HDEL', keys.claim, 'inbox_id')
claim.state = 'starting'
return answer('OK')
