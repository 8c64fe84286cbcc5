-- begin_ending(): a claim that its host has taken up is not freed but asked back: its amounts return with the host's
-- word that the work is gone.
local function begin_ending(cell, keys, claim, id, why)
  local host = redis.call('HMGET', keys.host, 'version', 'inbox')
  local version, number = whole(host[1], cell.seq, cell.seq) + 1, whole(host[2], 0, 0) + 1
  publish(cell, 'host', claim.host, version, 'ending', 0, {'claim', id})
  redis.call('HSET', keys.host, 'version', text(version), 'inbox', text(number))
  redis.call('ZREM', KEYS[4], id)
  redis.call('HDEL', keys.claim, 'expires_at_ms')
  take_hint(keys.inbox, claim.inbox_id)
  local entry = hint(cell, keys.inbox, number, 'end', id, claim.token)
  redis.call('HSET', keys.claim, 'state', 'ending', 'why', why, 'inbox_id', entry)
end
