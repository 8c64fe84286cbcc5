#!lua
-- void: a caller's own id moves on to another cell; a call that is still on its way to this one must find it closed.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 claim
-- ARGV  1 digest
-- Reply OK | SAME (void already) | CONFLICT (it has an outcome here: ask for it); epoch, now_ms
-- A call that was decided after this may use the id again: claim.lua compares the times.
-- include: fence
local cell = fence()
local claim = redis.call('HMGET', KEYS[4], 'state', 'voided_at_ms')
if claim[1] then
  return {claim[2] and 'SAME' or 'CONFLICT', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEYS[4], 'state', 'ended', 'why', 'void', 'host', '', 'digest', ARGV[1], 'token', '',
  'voided_at_ms', text(cell.now_ms))
redis.call('PEXPIRE', KEYS[4], cell.remember_ms)
return {'OK', cell.epoch, cell.now_ms}
