#!lua flags=allow-oom
-- gone: the host reports that the work of a placement has ended. Its amounts are freed, and the host's external usage
-- is updated in the same script.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token end_reason entry_id reason ...
-- Further keys: host, claims and inbox of the host, and what the claim counts in; passed.lua.
-- end_reason: used unless the placement is `ending`, which has a reason already. max-runtime closes the claim, and is
-- taken for released if it has no max_runtime_s. entry_id: of the inbox entry, or ''.
-- reason: text, or ''. Then slot, external amount ...
-- Reply OK | ALREADY_DONE (it had ended) | STALE | UNKNOWN | NOT_ATTESTED; epoch, now_ms, then, after OK and
--   ALREADY_DONE, the end reason; or RETRY, epoch, now_ms and the names of missing keys
-- include: about
local it = about(true)
if it.no then
  if it.no ~= 'NOT_ATTESTED' then
    acknowledge(it, ARG.entry_id)
  end
  if it.no == 'ENDED' then
    return answer_about(it, 'ALREADY_DONE', it.claim.tombstone.end_reason)
  end
  return answer_about(it, it.no)
end
local external = {}
for i = 7, #ARGV, 2 do
  external[#external + 1] = 'external.' .. ARGV[i]
  external[#external + 1] = ARGV[i + 1]
end
it.host.also, it.reason = external, ARG.reason
local stored = it.objects['reason:' .. ARG.id]
local ending, was_stuck = reason_of_ending(stored, it.placement)
it.placement.reason = ending
if it.placement.state ~= 'ending' then
  note_failed_move(it.cell, it.claim, it.placement)
end
local end_reason = it.placement.end_reason or ARG.end_reason
if end_reason == 'max-runtime' and not it.claim.fields.max_runtime_s then
  end_reason = 'released'
elseif end_reason == 'max-runtime' then
  close(it.claim, it.placement.root, end_reason) -- it is over wherever it is
end
free(it.claim, it.placement, end_reason)
local reply = commit_about(it, 'OK', it.placement.op)
if was_stuck and reply[1] == 'OK' then
  forget_stop_failure(stored)
end
return reply
