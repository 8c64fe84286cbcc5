-- begin_ending(): a claim that its host has taken up is not freed but asked back: its amounts return, and it leaves its
-- group, with the host's word that the work is gone.
local function begin_ending(cell, keys, claim, id, why)
  local host = redis.call('HMGET', keys.host, 'inbox', 'starting')
  local number, fields = whole(host[1], 0, 0) + 1, {}
  if claim.state == 'starting' then
    fields = {'starting', text(math.max(0, whole(host[2], 0, MOST) - 1))}
  end
  change_host(cell, keys.host, claim.host, 'ending', 0, id, fields)
  redis.call('HSET', keys.host, 'inbox', text(number))
  redis.call('ZREM', KEYS[4], id)
  redis.call('HDEL', keys.claim, 'expires_at_ms')
  take_hint(keys.inbox, claim.inbox_id)
  local entry = hint(cell, keys.inbox, number, 'end', id, claim.token)
  redis.call('HSET', keys.claim, 'state', 'ending', 'why', why, 'inbox_id', entry)
end
