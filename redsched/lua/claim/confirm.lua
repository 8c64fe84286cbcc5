#!lua flags=allow-oom
-- confirm: the work runs. claimed or starting -> active; no lease runs from then on, and the failures of its host are
-- reset. A placement that is no longer wanted, or whose gang has failed, is asked back instead. If the claim has
-- another placement, a scheduler is to take that one back.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token epoch
-- Further keys: host, claims and inbox of the host, its gang; passed.lua.
-- epoch: the one that the host has attested to; '' for any. A primary that was replaced and does not know it yet is in
-- another epoch: it would confirm to its clients that the work stays, and its successor would not know of it.
-- Reply OK | ALREADY_DONE (was active) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms
--   or RETRY, epoch, now_ms and the names of missing keys
-- A confirm after the deadline but before the sweep is fine: nothing was given away.
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
if (redis.call('HGET', it.host.key, 'failures') or '0') ~= '0' then
  it.host.also = {'failures', '0'}
end
return commit_about(it, 'OK')
