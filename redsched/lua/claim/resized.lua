#!lua flags=allow-oom
-- resized: the host's word that a placement's work has these amounts: the wanted ones, or those of before where it
-- could not be resized. What it holds above them is free.
-- KEYS meta changes hosts deadlines chores shelved claim ...
-- ARGV host id token ...
-- Further keys: host, claims and inbox of the host, then shared pools; passed.lua. Then slot, amount ...: all
-- that it has.
-- Reply OK | SAME (no resize is under way) | CONFLICT (it does not hold as much) | ENDING | GONE | STALE | UNKNOWN
--   | ATTEST; epoch, now_ms; or RETRY, epoch, now_ms and the names of missing keys
-- include: about
-- include: new_amounts
local it = about()
local placement, now = it.placement, amounts_in_argv(4)
local no = it.no or (placement.state == 'ending' and 'ENDING') or (not next(placement.wanted) and 'SAME')
if not no and not equal_amounts(larger_of(placement.amounts, now), placement.amounts) then
  no = 'CONFLICT'
end
if no then
  return answer_about(it, no)
end
placement.op = equal_amounts(now, placement.wanted) and 'resized' or 'resize-failed'
placement.amounts, placement.wanted, placement.hint = now, {}, 'none'
placement.work_ended_at_ms = nil -- by resizing, the hook may have begun other work
return commit_about(it, 'OK')
