-- bury(): what is left of a claim that has ended: enough to answer whoever still asks, for remember_s.
-- Uses KEYS 4 deadlines.
local function bury(cell, key, id, claim, why)
  redis.call('ZREM', KEYS[4], id)
  redis.call('DEL', key)
  redis.call('HSET', key, 'state', 'ended', 'why', why, 'host', claim.host, 'digest', claim.digest or '',
    'token', claim.token)
  redis.call('PEXPIRE', key, cell.remember_ms)
end
