#!lua flags=allow-oom
-- renew: give a placement that is not active yet a fresh lease. An active one needs none: ALREADY_DONE.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token lease_ms
-- Further keys: host, claims and inbox of the host; passed.lua.
-- Reply OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms, expires_at_ms ('' unless
--   OK)
-- include: about
local it = about()
local WORDS = {ending = 'ENDING', active = 'ALREADY_DONE'}
local no = it.no or WORDS[it.placement.state]
if no then
  return answer_about(it, no, '')
end
it.placement.expires_at_ms = text(it.cell.now_ms + tonumber(ARG.lease_ms))
return commit_about(it, 'OK', it.placement.expires_at_ms)
