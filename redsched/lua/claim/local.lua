#!lua
-- local: a host reports work that nobody has claimed, or changed amounts of such work. The work runs already, so it is
-- accepted even if it exceeds the host's capacity; the claim is active, and its host ends it with gone.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token project consumer ...
-- Further keys: host, claims and inbox of the host, then shared pools; passed.lua. token: of the last placement that
-- the host knows ('' for none). Then slot, amount ...: all of its amounts.
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        token, placed
--   ALREADY_DONE      likewise: the store has it with these amounts already
--   STALE     the token of the claim's present or last placement, which the host does not know: this call is a late
--             copy
--   CONFLICT  the id is another claim's, or is in use on another host
--   FULL      the count that would be too high: a sum above the largest amount, or the host's number of claims
--   RETRY     the names of missing keys
--   ENDING (its host has been asked to stop it) NOT_ATTESTED   nothing more
-- include: about
-- include: mark_over
-- include: new_amounts
-- include: too_much
local it, now = about(), amounts_in_argv(6)
local cell, claim, objects = it.cell, it.claim, it.objects
local _, placement = next(claim.placements)
local last = placement or claim.tombstone
if it.no == 'NOT_ATTESTED' then
  return answer_about(it, 'NOT_ATTESTED')
elseif claim.exists and (claim.fields.digest ~= 'local' or (placement and placement.host ~= ARG.host)) then
  return answer_about(it, 'CONFLICT')
elseif placement and placement.state == 'ending' then
  return answer_about(it, 'ENDING')
end
local fields = claim.fields
local same = placement and placement.state == 'active' and not next(placement.resizing_to)
local same_owner = fields.project == ARG.project and fields.consumer == ARG.consumer
if same and same_owner and equal_amounts(placement.amounts, now) then
  return answer_about(it, 'ALREADY_DONE', placement.token, placement.placed)
elseif claim.exists and last.token ~= ARG.token then
  return answer_about(it, 'STALE', last.token)
end
local token = next_token(cell)
if placement then
  placement.token, placement.amounts, placement.resizing_to = token, now, {}
  placement.state, placement.expires_at_ms, placement.notify = 'active', nil, 'none'
else
  fields.closed, fields.closed_reason = nil, nil
  placement = {host = ARG.host, state = 'active', token = token, amounts = now, resizing_to = {}, counted = {}}
  add_placement(claim, placement)
  local made_by = with_origin(cell, {})
  fields.actor, fields.request_id = nil, nil
  for i = 1, #made_by, 2 do
    fields[made_by[i]] = made_by[i + 1]
  end
end
placement.op = 'local'
fields.project, fields.consumer, fields.digest = ARG.project, ARG.consumer, 'local'
fields.claimed_at_ms = fields.claimed_at_ms or text(cell.now_ms)
local full = too_much(claim, objects)
if full then
  return answer_about(it, 'FULL', full)
end
local reply = commit_about(it, 'OK', token, placement.placed)
if reply[1] == 'OK' then
  for _, object in ipairs(objects) do
    if object.kind == 'host' or (object.kind == 'pool' and not object.ends) then
      mark_over(cell, object.kind, object.own_name, object.key)
    end
  end
  finish(cell)
end
return reply
