#!lua flags=allow-oom
-- release: the owner ends a claim for good, or shelves it to have it placed again later. The claim is closed: no
-- placement made until now is wanted, including one that the store has lost and a host may still report. What no host
-- has accepted is freed, and with `force` everything is; for the rest, the host is asked to stop the work.
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV id token end_reason how call_id closed reason
-- Further keys: host, claims and inbox of each host that the claim is on, and what it counts in; passed.lua.
-- token: '' for any; that of the target of a move under way releases only this placement, which ends as `moved`:
-- its claim continues elsewhere, also if its host reports this end to a store that has lost it. end_reason: released,
-- shelved, failed or max-runtime (no other host was found for the placement that `token` names, or not in time: STALE
-- if the claim has another placement by now). how: ask, force, or unless-active (as ask, but ACTIVE and nothing written
-- if the work runs). call_id: of the call to undo ('' for none): STALE if a later call has returned the claim. closed:
-- the token of an earlier closing that is repeated in a new epoch; '' for now. reason: the reason as text, for the
-- placement that `token` names or for the main one; '' for none.
-- Reply OK (all of it is freed) | ENDING | ALREADY_DONE (it had ended) | ENDED (to be shelved, but it was released) |
--   STALE | UNKNOWN | ACTIVE; epoch, now_ms, then the token up to which it is closed
--   or RETRY, epoch, now_ms and the names of missing keys
-- include: commit
-- include: reason
-- include: transitions
local cell, objects = fence(KEY.deadlines), passed(8)
local claim = load_claim(KEY.claim, ARG.id)
local function answer(outcome, ...)
  return {outcome, cell.epoch, cell.now_ms, ...}
end
local main = main_of(claim)
local GIVES_UP = {failed = true, ['max-runtime'] = true}

local function target_of()
  for _, placement in pairs(claim.placements) do
    if placement.token == ARG.token then
      return placement
    end
  end
end

-- Return whether this release only cancels a move: `token` names the target of one that is still under way. The token
-- of a placement that the claim has left releases the whole claim.
local function is_on_its_way(target)
  return target ~= nil and ARG.end_reason == 'released' and target.state ~= 'active' and not is_doomed(claim, target)
    and has_other_wanted(claim, target) and (target.from ~= nil or main.state == 'active')
end

local function is_closed_for_good()
  local end_reason = claim.fields.closed_reason
  return end_reason ~= nil and end_reason ~= 'shelved'
end

-- Return whether the claim has ended and nothing is left to do. Unless it was closed for good, it must still be closed
-- while hosts may report placements of it, and when an earlier closing is repeated, which also carries the end reason.
local function is_over(last)
  if main or last.state ~= 'ended' then
    return false
  end
  local repeats = ARG.closed ~= '' or is_unattested()
  return is_closed_for_good() or (not repeats and (last.end_reason ~= 'shelved' or ARG.end_reason == 'shelved'))
end

-- Return the outcome if there is nothing to do, or nil.
local function refusal()
  local last, target = claim.tombstone, target_of()
  if not claim.exists then
    return 'UNKNOWN'
  elseif ARG.call_id ~= '' and claim.fields.call_id ~= ARG.call_id then
    return 'STALE'
  elseif is_over(last) then
    local done = ARG.end_reason ~= 'shelved' or last.end_reason == 'shelved'
    return done and 'ALREADY_DONE' or 'ENDED'
  elseif ARG.token ~= '' and not target and not (last and last.token == ARG.token) then
    return 'STALE'
  elseif GIVES_UP[ARG.end_reason] and target and has_other_wanted(claim, target) then
    return 'STALE' -- this scheduler found no other host, but another one has placed it since
  elseif ARG.how == 'unless-active' and main and not is_on_its_way(target) and main.state == 'active' then
    return 'ACTIVE'
  elseif ARG.end_reason == 'shelved' and main and main.state == 'ending' and is_closed_for_good() then
    return 'ENDED'
  end
end

local no = refusal()
if no then
  return answer(no, claim.fields.closed or token_now(cell))
end
local lacking = {}
bind_gangs({claim}, objects, lacking)
for _, placement in pairs(claim.placements) do
  needs(objects, lacking, 'host:' .. placement.host)
end
if #lacking > 0 then
  return answer('RETRY', unpack(lacking))
end
local target = target_of()
local is_cancelled = is_on_its_way(target)
local is_closed_unattested = claim.fields.closed_reason == 'shelved' and is_unattested()
if not is_cancelled and (not is_closed(claim, ARG.end_reason) or is_closed_unattested) then
  close(claim, ARG.closed ~= '' and ARG.closed or token_now(cell), ARG.end_reason)
  local is_given_up = ARG.closed == '' and not GIVES_UP[ARG.end_reason]
  claim.fields.closed_by = is_given_up and string.match(cell.origin, '^([^\n]+)\n') or nil
end
for _, placement in ipairs(in_order(claim)) do
  if (is_cancelled and placement == target) or (not is_cancelled and is_doomed(claim, placement)) then
    local host_state = read_host_state(cell, objects['host:' .. placement.host].key)
    if ARG.how == 'force' and host_state == 'here' and placement.state ~= 'claimed' then
      note_dropped(cell, objects['host:' .. placement.host], placement)
    end
    if placement.end_reason == 'shelved' then
      placement.end_reason = ARG.end_reason
    end
    take_back(claim, placement, is_cancelled and 'moved' or ARG.end_reason, host_state, ARG.how == 'force')
  end
end
if claim.tombstone and claim.tombstone.end_reason == 'shelved' then
  claim.tombstone.end_reason = ARG.end_reason
end
local left = is_cancelled and claim.placements[target.placed] or not is_cancelled and next(claim.placements)
local outcome = left and 'ENDING' or 'OK'
if ARG.reason ~= '' and target then
  target.reason = ARG.reason
end
lacking = commit(cell, {claim}, objects, new_due())
if lacking then
  return answer('RETRY', unpack(lacking))
end
if ARG.reason ~= '' then
  keep_reason(cell, claim, objects['reason:' .. ARG.id], target or main or claim.tombstone, ARG.reason)
end
return answer(outcome, is_cancelled and '' or claim.fields.closed)
