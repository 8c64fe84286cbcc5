-- The due work on claims: their deadlines, the reconciliation by schedulers, and the time to live of ended ones.
-- Collected for all claims of a script and written once, removals last.
-- include: claim_record
-- include: fence
-- include: in_chunks
-- include: remove_members
-- include: transitions
local function new_due()
  return {pause_ms = 0, at = {}, deadlines = {}, gone = {}, shelve = {}, unshelve = {}, done = {}}
end

-- Return whether a claim is shelved, or being shelved.
local function is_shelved(claim)
  if has_placement_after(claim, claim.fields.closed or '') then
    return false
  end
  if next(claim.placements) then
    return claim.fields.closed_reason == 'shelved'
  end
  return claim.tombstone ~= nil and claim.tombstone.end_reason == 'shelved'
end

-- Return the earliest deadline of a claim's placements, or nil.
local function deadline_of(claim)
  local earliest
  for _, placement in pairs(claim.placements) do
    local expires, by = tonumber(placement.expires_at_ms), tonumber(placement.move_deadline_ms)
    local at = (expires and by) and math.min(expires, by) or expires or by
    earliest = (earliest and at) and math.min(earliest, at) or earliest or at
  end
  return earliest
end

-- Return whether there is work that only a scheduler can finish: an unwanted placement that has not been released, or a
-- pending claim to place again, or the other members of its gang to release.
local function is_unfinished(claim)
  for _, placement in pairs(claim.placements) do
    if placement.state ~= 'ending' and is_doomed(claim, placement) then
      return true
    end
  end
  return claim.fields.retry_root ~= nil or claim.fields.gang_exit == 'release'
end

local function note_due(cell, claim, due)
  local before, now = deadline_of(claim.before), deadline_of(claim)
  if now and now ~= before then
    due.deadlines[#due.deadlines + 1] = text(now)
    due.deadlines[#due.deadlines + 1] = claim.id
  elseif not now and (before or not next(claim.placements)) then
    due.gone[#due.gone + 1] = claim.id
  end
  if is_unfinished(claim) then
    due.at[claim.id] = due.at[claim.id] or cell.now_ms + (claim.retry_in_ms or due.pause_ms)
  end
  local ended = not next(claim.placements) and claim.tombstone.state == 'ended'
  local shelved = is_shelved(claim)
  if shelved then
    due.shelve[#due.shelve + 1] = claim.id
  elseif is_shelved(claim.before) then
    due.unshelve[#due.unshelve + 1] = claim.id
  end
  if ended and not shelved and not due.at[claim.id] then
    redis.call('PEXPIRE', claim.key, cell.remember_ms)
  elseif claim.before.exists and not next(claim.before.placements) then
    redis.call('PERSIST', claim.key)
  end
end

local function write_due(due)
  local at = {}
  for id, at_ms in pairs(due.at) do
    at[#at + 1] = text(at_ms)
    at[#at + 1] = id
    due.done[id] = nil
  end
  local done = {}
  for id in pairs(due.done) do
    done[#done + 1] = id
  end
  in_chunks('ZADD', KEY.deadlines, due.deadlines)
  in_chunks('ZADD', KEY.reconcile, at)
  in_chunks('SADD', KEY.shelved, due.shelve)
  remove_members('ZREM', KEY.deadlines, due.gone)
  remove_members('ZREM', KEY.reconcile, done)
  remove_members('SREM', KEY.shelved, due.unshelve)
end
