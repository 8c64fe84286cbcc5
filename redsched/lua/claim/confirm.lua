#!lua flags=allow-oom
-- confirm: the host reports that a placement's work runs. claimed or starting -> active; the lease is removed, and the
-- `failures` of the host are reset. A placement that is no longer wanted, or whose gang has failed, becomes `ending`
-- instead. If the claim has another placement, a scheduler releases that one.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token epoch log
-- Further keys: host, claims and inbox of the host, its gang; passed.lua.
-- epoch: the one to which the host has attested; '' for any. A replaced primary that still answers is in another epoch:
-- if it accepted the confirm, clients would take the work for confirmed, but the new primary would not know.
-- log: the path of the file on the host that has the log of the work; '' if there is none.
-- Reply OK | ALREADY_DONE (was active) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms
--   or RETRY, epoch, now_ms and the names of missing keys
-- A confirm after the deadline but before the sweep is valid: nothing was released.
-- include: about
local it = about()
local claim, placement = it.claim, it.placement
local WORDS = {ending = 'ENDING', active = 'ALREADY_DONE'}
if ARG.epoch ~= '' and ARG.epoch ~= it.cell.epoch then
  return answer_about(it, 'NOT_ATTESTED')
end
local no = it.no or WORDS[placement.state]
if no then
  return answer_about(it, no)
end
local lacking = {}
bind_gangs({claim}, it.objects, lacking)
if #lacking > 0 then
  return answer_about(it, 'RETRY', unpack(lacking))
elseif is_doomed(claim, placement) then
  stop(placement, reason_of(claim, placement), true)
  return commit_about(it, 'ENDING')
elseif is_bound(claim) and claim.gang.hash.end_reason then
  stop(placement, 'failed', true)
  close(claim, token_now(it.cell), 'failed')
  return commit_about(it, 'ENDING')
end
activate(it.cell, claim, placement)
claim.fields.log = ARG.log ~= '' and ARG.host .. ':' .. ARG.log or nil
if (redis.call('HGET', it.host.key, 'failures') or '0') ~= '0' then
  it.host.also = {'failures', '0'}
end
return commit_about(it, 'OK')
