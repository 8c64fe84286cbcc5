#!lua flags=allow-oom
-- stop_failed: the host reports that it could not stop the work of a placement that is ending. Only the claim's reason
-- changes: the host tries again, and the amounts stay taken.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token reason
-- Further keys: host, claims and inbox of the host, and the claim's reason; passed.lua.
-- reason: what went wrong, as text.
-- Reply OK | ENDED | STALE (the placement is not ending, or was placed again) | UNKNOWN | NOT_ATTESTED; epoch, now_ms
-- include: about
local it = about(true)
local no = it.no or (it.placement.state ~= 'ending' and 'STALE')
if no then
  return answer_about(it, no)
end
local stored = it.objects['reason:' .. ARG.id]
if stored and ARG.reason ~= '' then
  keep_stop_failure(it.cell, stored, it.placement, ARG.reason)
end
return answer_about(it, 'OK')
