#!lua flags=allow-oom
-- accept: the host accepts a placement and is about to start its work. claimed -> starting, with a fresh lease.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token lease_ms entry_id
-- Further keys: host, claims and inbox of the host; passed.lua. entry_id: of the inbox entry, or ''.
-- Reply OK | ALREADY_DONE (was accepted before) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms, state
-- After every outcome but NOT_ATTESTED, the notification is no longer needed and is deleted.
-- include: about
local it = about()
local placement = it.placement
local WORDS = {ending = 'ENDING', starting = 'ALREADY_DONE', active = 'ALREADY_DONE'}
local no = it.no or WORDS[placement.state]
if no then
  if no ~= 'NOT_ATTESTED' then
    acknowledge(it, ARG.entry_id)
  end
  return answer_about(it, no, placement and placement.state or '')
end
placement.state, placement.notify = 'starting', 'none'
placement.expires_at_ms = text(it.cell.now_ms + tonumber(ARG.lease_ms))
return commit_about(it, 'OK', 'starting')
