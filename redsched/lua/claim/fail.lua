#!lua flags=allow-oom
-- fail: the work of a placement could not be started, or has to leave its host. A call by the host frees the amounts at
-- once, because the host has cleaned up; a call by anyone else frees a placement only if no host has accepted it, and
-- otherwise makes it `ending`. A call by the host increments its `failures`. Unless the claim has another wanted
-- placement, it is placed again, as often as its request allows; otherwise it ends.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token by_host again reason
-- Further keys: host, claims and inbox of the host, and what the claim counts in; passed.lua.
-- by_host: 0 or 1. again: 1 (place it again in any case), 0 (do not), '' (as its request says), leave (as 1; the reason
-- is that its host is drained or evacuated), later (it has failed and is pending, and no host has room for it now:
-- search again later), gang (do not: it ends with its gang; ALREADY_DONE if it is active and the gang may be complete),
-- with-gang (as 1, and its host has done nothing wrong: another member of its gang has ended).
-- reason: text, or ''.
-- Reply OK (freed) | ENDING | ALREADY_DONE (it had failed, or its host no longer has it) | ENDED (for another reason) |
--   STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms, state of the claim (pending: it will be placed again)
--   or RETRY, epoch, now_ms and the names of missing keys
-- include: about
-- include: end_reason
local RETRIED = {failed = true, expired = true}
local it = about(true)
local claim, placement, by_host = it.claim, it.placement, ARG.by_host == '1'
local leaves = ARG.again == 'leave'
local again = (leaves or ARG.again == 'with-gang') and '1' or ARG.again
if again == 'later' and (placement or it.no == 'ENDED') then
  if claim.fields.retry_from ~= ARG.token or has_other_wanted(claim) then
    return answer_about(it, 'STALE')
  end
  it.placement, it.reason = placement or claim.tombstone, ARG.reason
  postpone_search(claim)
  return commit_about(it, 'OK', 'pending')
end
if it.no == 'ENDED' and (by_host or (claim.tombstone.end_reason == 'failed' and again ~= '1')) then
  return answer_about(it, 'ALREADY_DONE', claim.tombstone.state)
elseif it.no == 'ENDED' and again == '1' and RETRIED[claim.tombstone.end_reason] and not claim.fields.closed then
  retry(it.cell, claim, claim.tombstone, claim.tombstone.end_reason, true)
  return commit_about(it, 'OK', 'pending')
elseif it.no then
  return answer_about(it, it.no)
end
local lacking = {}
bind_gangs({claim}, it.objects, lacking)
if #lacking > 0 then
  return answer_about(it, 'RETRY', unpack(lacking))
end
local kept = ARG.again == 'gang' and blocks_ending(it.cell, claim, it.host.key)
if kept then
  return answer_about(it, kept)
end
judge_written_off(it.cell, claim, it.host.key)
it.reason = leaves and leaving_reason(ARG.host, it.host.key) or ARG.reason
local was_ending = placement.state == 'ending'
if by_host then
  free(claim, placement, placement.end_reason or 'failed')
  local failures = to_int(redis.call('HGET', it.host.key, 'failures'), 0, 0)
  it.host.also = {'failures', text(math.min(MOST, failures + 1))}
else
  take_back(claim, placement, 'failed', it.host_state)
end
if not was_ending then
  note_failed_move(it.cell, claim, placement)
end
if not was_ending and not has_other_wanted(claim, placement) then
  if is_bound(claim) or (again == '0' and not by_host) then
    close(claim, token_now(it.cell), 'failed')
  elseif again ~= '0' then
    local tried = claim.fields[TRIED .. placement.host]
    if again == '1' and claim.fields.gang_on_exit == 'replace' and is_restart(claim, placement) then
      restart_pause(it.cell, claim) -- its gang waits, and not this claim
    end
    retry(it.cell, claim, placement, 'failed', again == '1')
    if ARG.again == 'with-gang' then
      claim.fields[TRIED .. placement.host] = tried
    end
  end
end
local state = claim.fields.retry_root and 'pending' or next(claim.placements) and 'ending' or 'ended'
return commit_about(it, claim.placements[placement.placed] and 'ENDING' or 'OK', state)
