#!lua flags=allow-oom
-- confirm: the work runs. claimed or starting -> active; no lease runs from then on, and its host's failures are over.
-- A claim that is to succeed another leaves a chore; one whose gang has failed meanwhile is asked back.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then its gang
-- ARGV  1 host, 2 id, 3 token
-- Reply OK | SAME (was active) | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms
--   or RETRY, epoch, now_ms and `gang:<id>`, whose key is missing
-- After the deadline but before the sweep is fine: nothing was given away.
-- include: begin_ending
-- include: change_host
-- include: claim_state
-- include: count_active
-- include: fence
-- include: key_set
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: take_hint
-- include: whole
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local words = {ended = 'GONE', ending = 'ENDING', active = 'SAME'}
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3]) or words[claim.state]
if no then
  return {no, cell.epoch, cell.now_ms}
end
local gang
if claim.gang then
  gang = passed_things(10)['gang:' .. claim.gang]
  if not gang then
    return {'RETRY', cell.epoch, cell.now_ms, 'gang:' .. claim.gang}
  elseif redis.call('HGET', gang.key, 'why') then
    begin_ending(cell, keys, claim, ARGV[2], 'failed', {[gang.name] = gang})
    finish(cell)
    return {'ENDING', cell.epoch, cell.now_ms}
  end
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
if gang then
  count_active(gang)
end
if claim.former then
  redis.call('HSET', keys.claim, 'arrived', '1')
  redis.call('ZADD', KEYS[5], text(cell.now_ms), ARGV[2])
end
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
