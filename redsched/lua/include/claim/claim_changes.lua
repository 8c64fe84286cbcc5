-- prepare(): compute the effects of a script on its claims: which placements have changed, by how much the objects that
-- count them change, and which keys are missing. Nothing is written here.
-- include: claim_record
-- include: counters
-- include: gangs
-- include: passed
-- include: transitions

-- Return why a claim has ended: the reason of its closing, or that of its last placement. A claim that was unshelved
-- but never became active stays shelved.
local function ended_because(claim, last)
  local closed, end_reason = claim.fields.closed, claim.fields.closed_reason
  local was_active = claim.current and not ranks_above(last, claim.current)
  if closed and (not newer(last.root, closed) or (end_reason == 'shelved' and not was_active)) then
    return end_reason
  end
  return last.op or last.end_reason or 'void'
end

-- What a claim has moved away from does not end it. If nothing else is left, the claim has ended for the reason of what
-- is freed now, so it is closed for that, whatever its hosts stop last. Not while a host has to attest: it may have a
-- later placement, which the store has lost, and which descends from the same root.
local OVER = {released = true, expired = true, failed = true, ['work-ended'] = true, ['max-runtime'] = true}

local function close_if_over(claim)
  local last = claim.freed and claim.freed[#claim.freed]
  if not last or not OVER[last.op] or claim.fields.retry_root or not next(claim.placements) then
    return
  end
  local newest = last.root
  for _, placement in pairs(claim.placements) do
    if placement.end_reason ~= 'moved' then
      return
    end
    newest = newer(placement.root, newest) and placement.root or newest
  end
  if not is_unattested() then
    close(claim, newest, last.op)
  end
end

local function keep_surviving(fields)
  for field in pairs(fields) do
    fields[field] = (SURVIVE[field] or string.sub(field, 1, #TRIED) == TRIED) and fields[field] or nil
  end
end

-- A claim without a placement is pending or has ended; its remaining fields serve later calls.
local function set_tombstone(claim)
  local is_unknown = claim.fields.voided_at_ms and not claim.freed -- its id was never known, so nothing has ended
  if next(claim.placements) or is_unknown then
    return
  end
  local last = claim.freed and claim.freed[#claim.freed] or claim.tombstone
  local state, end_reason = 'ended', ended_because(claim, last)
  if claim.fields.retry_root then
    state, end_reason = 'pending', claim.fields.retry_reason
  else
    keep_surviving(claim.fields)
  end
  claim.tombstone = {host = last.host, token = last.token, placed = last.placed, root = last.root, state = state,
    end_reason = end_reason, amounts = {}, resizing_to = {}, counted = {}}
end

-- Return the placements that this script has changed, including those it has freed. The feed does not report one
-- without `op`.
local function changed_placements(claim)
  local changed = {}
  for _, placement in ipairs(in_order(claim)) do
    changed[#changed + 1] = (placement.op or placement.notify) and placement or nil
  end
  for _, placement in ipairs(claim.freed or {}) do
    changed[#changed + 1] = placement
  end
  return changed
end

local function prepare_claim(claim, objects, lacking)
  close_if_over(claim)
  set_tombstone(claim)
  claim.before = parse_claim(claim.id, claim.key, claim.stored, claim.exists)
  claim.delta = difference(counters(claim.before), counters(claim))
  claim.changed = changed_placements(claim)
  for name in pairs(claim.delta) do
    needs(objects, lacking, name)
  end
  for _, placement in ipairs(claim.changed) do
    needs(objects, lacking, 'host:' .. placement.host)
  end
end

local function prepare(claims, objects)
  local lacking = {}
  bind_gangs(claims, objects, lacking)
  for _, claim in ipairs(claims) do
    prepare_claim(claim, objects, lacking)
  end
  return lacking
end
