-- begin_ending(): a claim that its host has taken up is not freed but asked back: its amounts return, and it leaves its
-- group, with the host's word that the work is gone. `things` as for end_claim().
-- include: change_host
-- include: fence
-- include: gang
-- include: hint
-- include: leased
-- include: take_hint
-- include: whole
local function begin_ending(cell, keys, claim, id, why, things)
  local host = redis.call('HMGET', keys.host, 'inbox', 'starting')
  local number, fields = whole(host[1], 0, 0) + 1, {}
  if LEASED[claim.state] then
    fields = {'starting', text(math.max(0, whole(host[2], 0, MOST) - 1))}
  end
  change_host(cell, keys.host, claim.host, 'ending', 0, id, fields)
  redis.call('HSET', keys.host, 'inbox', text(number))
  redis.call('ZREM', KEYS[4], id)
  redis.call('HDEL', keys.claim, 'expires_at_ms')
  leave_gang(cell, things, claim, id, why)
  if not claim.gang then
    redis.call('HDEL', keys.claim, 'gang')
  end
  if claim.fell then
    redis.call('HSET', keys.claim, 'fell', claim.fell)
  end
  local entry = hint(cell, keys.inbox, number, 'end', id, claim.token)
  take_hint(keys.inbox, claim.inbox_id)
  redis.call('HSET', keys.claim, 'state', 'ending', 'why', why, 'inbox_id', entry)
end
