#!lua flags=allow-oom
-- work_ended: the host reports that the work of a placement has ended by itself. The claim records it and keeps its
-- amounts: its host (fail) or its owner decides what happens to it.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token reason
-- Further keys: host, claims and inbox of the host, and the claim's reason; passed.lua. reason: how the host observed
-- the end, as text.
-- Reply OK | ALREADY_DONE (reported before) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms
-- include: about
local it = about()
local no = it.no or (it.placement.state == 'ending' and 'ENDING') or (it.placement.work_ended_at_ms and 'ALREADY_DONE')
if no then
  return answer_about(it, no)
end
it.placement.work_ended_at_ms, it.placement.op, it.reason = text(it.cell.now_ms), 'work-ended', ARG.reason
return commit_about(it, 'OK')
