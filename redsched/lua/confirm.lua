#!lua flags=allow-oom
-- confirm: the work runs. claimed or starting -> active; no lease runs from then on, and its host's failures are over.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox
-- ARGV  1 host, 2 id, 3 token
-- Reply OK | SAME (was active) | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms
-- After the deadline but before the sweep is fine: nothing was given away.
-- include: fence
-- include: publish
-- include: read_hash
-- include: claim_state
-- include: whole
-- include: change_host
-- include: take_hint
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local words = {ended = 'GONE', ending = 'ENDING', active = 'SAME'}
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3]) or words[claim.state]
if no then
  return {no, cell.epoch, cell.now_ms}
end
local host = redis.call('HMGET', keys.host, 'starting', 'failures')
local fields = {'starting', text(math.max(0, whole(host[1], 0, MOST) - 1))}
if host[2] and host[2] ~= '0' then
  fields[3], fields[4] = 'failures', '0'
end
change_host(cell, keys.host, ARGV[1], 'active', 0, ARGV[2], fields)
redis.call('HSET', keys.claim, 'state', 'active')
redis.call('ZREM', KEYS[4], ARGV[2])
take_hint(keys.inbox, claim.inbox_id)
redis.call('HDEL', keys.claim, 'expires_at_ms', 'inbox_id')
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
