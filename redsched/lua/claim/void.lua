#!lua
-- void: close an id that is not known here. Either a caller's own id moves on to another cell, and a call that is still
-- in flight to this one must not claim it; or its owner was told that it is gone, and a host that comes back must not
-- resurrect it: nothing that was placed before `token` is wanted.
-- KEYS meta changes hosts claim
-- ARGV digest unheard token end_reason
-- unheard: 1: only if hosts of an earlier epoch may still have something to report. token: '' for now, or that of an
-- earlier closing, which is repeated; what was placed since then stays. end_reason: that of the closing.
-- Reply OK (void, or up to a later token than before) | ALREADY_DONE (void already, or nobody could restore it) |
--   CONFLICT (it has an outcome here: ask for it); epoch, now_ms, then the token up to which it is closed
-- A call that was decided after this may use the id again: claim.lua compares the times.
-- include: fence
-- include: token
local cell = fence()
local claim = redis.call('HMGET', KEY.claim, 'state', 'voided_at_ms', 'closed')
local token = ARG.token ~= '' and ARG.token or cell.epoch .. '.' .. text(cell.seq)
if claim[2] then
  if not newer(token, claim[3]) then
    return {'ALREADY_DONE', cell.epoch, cell.now_ms, claim[3]}
  end
  redis.call('HSET', KEY.claim, 'closed', token, 'closed_reason', ARG.end_reason)
  return {'OK', cell.epoch, cell.now_ms, token}
elseif claim[1] then
  return {'CONFLICT', cell.epoch, cell.now_ms, claim[3] or ''}
end
if ARG.unheard == '1' and redis.call('HGET', KEY.meta, 'unattested') == '0' then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms, token}
end
redis.call('HSET', KEY.claim, 'state', 'ended', 'end_reason', 'void', 'host', '', 'digest', ARG.digest, 'token', token,
  'closed', token, 'closed_reason', ARG.end_reason, 'voided_at_ms', text(cell.now_ms))
redis.call('PEXPIRE', KEY.claim, cell.remember_ms)
return {'OK', cell.epoch, cell.now_ms, token}
