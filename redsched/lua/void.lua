#!lua
-- void: an id that is not known here is closed. A caller's own moves on to another cell, and a call that is still on
-- its way to this one must not claim it; or its owner was told that it is gone, and a host that comes back must not
-- restore it: the token is later than that of any earlier placing.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 claim
-- ARGV  1 digest, 2 unheard (1: only where hosts of an earlier epoch may still have something to say), 3 token ('' for
--       now): that of an earlier closing, which is said again; what was placed since then stays
-- Reply OK | SAME (void already, or nobody could restore it) | CONFLICT (it has an outcome here: ask for it); epoch,
--   now_ms
-- A call that was decided after this may use the id again: claim.lua compares the times.
-- include: fence
local cell = fence()
local claim = redis.call('HMGET', KEYS[4], 'state', 'voided_at_ms')
if claim[1] then
  return {claim[2] and 'SAME' or 'CONFLICT', cell.epoch, cell.now_ms}
end
if ARGV[2] == '1' and redis.call('HGET', KEYS[1], 'unattested') == '0' then
  return {'SAME', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEYS[4], 'state', 'ended', 'why', 'void', 'host', '', 'digest', ARGV[1], 'token',
  ARGV[3] ~= '' and ARGV[3] or cell.epoch .. '.' .. text(cell.seq), 'voided_at_ms', text(cell.now_ms))
redis.call('PEXPIRE', KEYS[4], cell.remember_ms)
return {'OK', cell.epoch, cell.now_ms}
