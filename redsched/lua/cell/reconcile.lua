#!lua flags=allow-oom
-- reconcile: do what is due for some claims: end placements whose lease has expired, that are no longer wanted or that
-- are on written-off hosts, and cancel moves that are past their deadline. The outcome depends on the claims alone: any
-- scheduler may call it, at any time and any number of times.
-- KEYS meta changes hosts deadlines reconcile shelved ...
-- ARGV gang_done ...
-- Further keys: the claim of each id, then host, claims and inbox of the hosts that they are on, and what they count
-- in; passed.lua. gang_done: 1 if the gangs of these claims have failed, or have ended with them (`gang_exit`), and all
-- their members have been released: until then the `reconcile` entry of a member that has left such a gang stays. Then
-- the ids.
-- Reply OK, epoch, now_ms, number of claims changed; or RETRY, epoch, now_ms and the names of missing keys
-- What depends on a host that has not attested to this epoch is left for later.
-- include: commit
-- include: reason
-- include: transitions
-- include: utc
local cell, claims, lacking = fence(KEY.deadlines), {}, {}
local objects = passed(6 + #ARGV)

local function is_past(at_ms)
  return at_ms and tonumber(at_ms) <= cell.now_ms
end

for i = 2, #ARGV do
  local claim = load_claim(KEYS[5 + i], ARGV[i])
  claims[#claims + 1] = claim
  for _, placement in pairs(claim.placements) do
    needs(objects, lacking, 'host:' .. placement.host)
    if is_past(placement.expires_at_ms) then
      needs(objects, lacking, 'reason:' .. claim.id)
    end
  end
end
bind_gangs(claims, objects, lacking)
if #lacking > 0 then
  return {'RETRY', cell.epoch, cell.now_ms, unpack(lacking)}
end

local MISSED = {claimed = 'accepted it', starting = 'confirmed that its work runs'}

-- Return the `end_reason` with which one placement must be released now, or nil.
local function due_reason(claim, placement, host_state)
  if is_doomed(claim, placement) and host_state ~= 'unattested' then
    return reason_of(claim, placement)
  elseif placement.state == 'ending' then
    return is_lost(host_state) and (placement.end_reason or 'void') or nil
  elseif LEASED[placement.state] and (host_state == 'here' or host_state == 'lost') then
    local too_long = is_past(placement.move_deadline_ms) and has_other_wanted(claim, placement)
    return (is_past(placement.expires_at_ms) or too_long) and 'expired' or nil
  end
end

-- A move whose source has failed has nothing to return to: only its lease ends it.
local function drop_move_deadline(claim, placement)
  local drops = is_past(placement.move_deadline_ms) and not has_other_wanted(claim, placement)
  placement.move_deadline_ms = not drops and placement.move_deadline_ms or nil
  return drops
end

local function step(claim, placement)
  local host = objects['host:' .. placement.host]
  local host_state = read_host_state(cell, host.key)
  local end_reason = due_reason(claim, placement, host_state)
  if not end_reason or (placement.state == 'ending' and host_state == 'here') then
    return false
  end
  if end_reason == 'expired' and is_past(placement.expires_at_ms) then
    claim.expired = placement
    placement.reason = 'its lease ended at ' .. utc(tonumber(placement.expires_at_ms)) .. ', and host '
      .. placement.host .. ' had not ' .. MISSED[placement.state]
  end
  judge_written_off(cell, claim, host.key)
  if end_reason == 'expired' then
    note_failed_move(cell, claim, placement)
  end
  local not_taken_up = placement.state == 'claimed' and end_reason == 'expired'
  take_back(claim, placement, end_reason, host_state)
  if is_bound(claim) and end_reason == 'expired' then
    close(claim, token_now(cell), end_reason)
  elseif not_taken_up and (redis.call('HGET', host.key, 'agent.journal') or '') ~= '' then
    retry(cell, claim, placement, end_reason)
  end
  return true
end

local changed, due = 0, new_due()
due.pause_ms = 1000
for _, claim in ipairs(claims) do
  local any = false
  for _, placement in ipairs(in_order(claim)) do
    any = step(claim, placement) or drop_move_deadline(claim, placement) or any
  end
  if ARG.gang_done == '1' and phase_of(claim) == 'out' then
    claim.fields.gang = nil
    claim.fields.gang_exit = claim.fields.retry_root and claim.fields.gang_exit
  end
  changed = changed + (any and 1 or 0)
  if claim.fields.retry_root and not claim.retry_in_ms then
    -- The claim was pending before this call, which must not bring its next attempt forward.
    -- Beyond the longest pause, it is of a clock that was ahead.
    local noted_ms = tonumber(redis.call('ZSCORE', KEY.reconcile, claim.id) or '0')
    noted_ms = noted_ms <= cell.now_ms + LONGEST_PAUSE_MS and noted_ms or 0
    due.at[claim.id] = math.max(cell.now_ms + due.pause_ms, noted_ms)
  end
  -- Two schedulers may reconcile the same claims: the second must not remove the entry in `reconcile` by which the
  -- first noted that the gang has failed.
  local gang_waits = ARG.gang_done ~= '1' and claim.gang and claim.gang.hash.end_reason
  due.done[claim.id] = not gang_waits or nil
end
local known = {}
for _, claim in ipairs(claims) do
  if claim.exists then
    known[#known + 1] = claim
  else
    due.gone[#due.gone + 1] = claim.id
  end
end
lacking = commit(cell, known, objects, due)
if lacking then
  return {'RETRY', cell.epoch, cell.now_ms, unpack(lacking)}
end
for _, claim in ipairs(known) do
  if claim.expired then
    keep_reason(cell, claim, objects['reason:' .. claim.id], claim.expired, claim.expired.reason)
  end
end
return {'OK', cell.epoch, cell.now_ms, changed}
