#!lua flags=allow-oom
-- accept: the host accepts a placement and is about to start its work. claimed -> starting, with a fresh lease.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token lease_ms entry_id
-- Further keys: host, claims and inbox of the host; passed.lua. entry_id: of the inbox entry, or ''.
-- Reply OK | ALREADY_DONE (was accepted before) | ENDING | ENDED | STALE (or not wanted any more) | UNKNOWN
-- | NOT_ATTESTED | SETTLING (it is of an earlier epoch, and a host that has not attested may have a later one);
-- epoch, now_ms, state
-- After every outcome but NOT_ATTESTED and SETTLING, the notification is no longer needed and is deleted.
-- include: about
local it = about()
local placement = it.placement
local WORDS = {ending = 'ENDING', starting = 'ALREADY_DONE', active = 'ALREADY_DONE'}
local no = it.no or WORDS[placement.state] or (is_doomed(it.claim, placement) and 'STALE')
if not no and not it.cell.settled and string.sub(placement.token, 1, #it.cell.epoch + 1) ~= it.cell.epoch .. '.' then
  no = 'SETTLING'
end
if no then
  if no ~= 'NOT_ATTESTED' and no ~= 'SETTLING' then
    acknowledge(it, ARG.entry_id)
  end
  return answer_about(it, no, placement and placement.state or '')
end
placement.state, placement.notify = 'starting', 'none'
placement.expires_at_ms = text(it.cell.now_ms + tonumber(ARG.lease_ms))
return commit_about(it, 'OK', 'starting')
