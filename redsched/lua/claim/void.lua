#!lua flags=allow-oom
-- void: close an id that this cell does not know. Either a caller's own id is used in another cell from now on, and a
-- call still in flight to this cell must not claim it; or its owner got the reply that the claim is gone, and a host
-- that returns must not restore it: placements made before `token` are not wanted.
-- KEYS meta changes hosts claim
-- ARGV digest if_unattested token end_reason
-- if_unattested: 1: only if some host has not attested to this epoch and may still restore the id. token: '' for now,
-- or that of an earlier closing, which is repeated; later placements stay. end_reason: that of the closing.
-- Reply OK (voided, or closed up to a later token than before) | ALREADY_DONE (voided before, or no host can restore
--   it) | CONFLICT (the id has an outcome here: query it); epoch, now_ms, then the token up to which it is closed
-- A call that was decided after this may use the id again: claim.lua compares the times.
-- include: fence
-- include: token
local cell = fence()
local claim = redis.call('HMGET', KEY.claim, 'state', 'voided_at_ms', 'closed')
local token = ARG.token ~= '' and ARG.token or cell.epoch .. '.' .. text(cell.seq)
if claim[1] and not claim[2] then
  return {'CONFLICT', cell.epoch, cell.now_ms, claim[3] or ''}
elseif claim[2] and not newer(token, claim[3]) then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms, claim[3]}
elseif ARG.if_unattested == '1' and redis.call('HGET', KEY.meta, 'unattested') == '0' then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms, token}
elseif claim[2] then
  redis.call('HSET', KEY.claim, 'closed', token, 'closed_reason', ARG.end_reason)
  return {'OK', cell.epoch, cell.now_ms, token}
end
redis.call('HSET', KEY.claim, 'state', 'ended', 'end_reason', 'void', 'host', '', 'digest', ARG.digest, 'token', token,
  'closed', token, 'closed_reason', ARG.end_reason, 'voided_at_ms', text(cell.now_ms))
redis.call('PEXPIRE', KEY.claim, cell.remember_ms)
return {'OK', cell.epoch, cell.now_ms, token}
