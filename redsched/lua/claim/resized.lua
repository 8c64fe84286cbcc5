#!lua flags=allow-oom
-- resized: the host reports the amounts that a placement's work has now: the requested ones, or the former ones if it
-- could not be resized. Whatever the placement holds above them is freed.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token ...
-- Further keys: host, claims and inbox of the host, then shared pools; passed.lua. Then slot, amount ...: all of its
-- amounts.
-- Reply OK | ALREADY_DONE (no resize is under way) | CONFLICT (the placement holds less) | ENDING | ENDED | STALE |
--   UNKNOWN | NOT_ATTESTED; epoch, now_ms; or RETRY, epoch, now_ms and the names of missing keys
-- include: about
-- include: new_amounts
local it = about()
local placement, now = it.placement, amounts_in_argv(4)
local no = it.no or (placement.state == 'ending' and 'ENDING') or (not next(placement.resizing_to) and 'ALREADY_DONE')
if not no and not equal_amounts(larger_of(placement.amounts, now), placement.amounts) then
  no = 'CONFLICT'
end
if no then
  return answer_about(it, no)
end
placement.op = equal_amounts(now, placement.resizing_to) and 'resized' or 'resize-failed'
placement.amounts, placement.resizing_to, placement.notify = now, {}, 'none'
placement.work_ended_at_ms = nil -- the hook may have started new work to resize it
return commit_about(it, 'OK')
