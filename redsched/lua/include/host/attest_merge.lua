-- merge(): merge a host's journal with the store, claim by claim. Attestation only restores: reconcile.lua determines
-- afterwards what is no longer wanted. Only placements that the store ended in an earlier epoch, or lost with a host
-- that was written off in any epoch, are restored as `ending`: they are counted for as long as they run.
--
-- `restoring` is false once the host has attested to this epoch: then a placement that only the journal has was ended,
-- and the host must drop it. Returns the claims, and the placements to drop.
-- include: attest_entries
-- include: claim_record
-- include: clock_shift
-- include: leased
-- include: transitions
local merge
do -- what only merge() uses: the server allows a script 200 local variables at its top level
  local RANK = {claimed = 1, starting = 2, active = 3, ending = 4}
  local JOURNALS = {'amounts', 'resizing_to', 'counted', 'token', 'resized_from', 'unreadable'}

  -- Merge the journal's placement of the same name: take the more advanced state, and the amounts of the later token.
  -- The agent counts how long its work may run on its own clock. It reports the deadline only if that differs from what
  -- it was given: `deadline_ms` is as it reports it.
  local function join(cell, claim, placement, held, deadline_ms)
    if newer(held.token, placement.token) then
      for _, field in ipairs(JOURNALS) do
        placement[field] = held[field]
      end
    end
    placement.work_ended_at_ms = placement.work_ended_at_ms or held.work_ended_at_ms
    if deadline_ms and deadline_ms ~= claim.stored.runtime_deadline_ms and claim.fields.runtime_deadline_ms then
      local most_ms = cell.now_ms + to_int(claim.fields.max_runtime_s, 0, 0) * 1000
      claim.fields.runtime_deadline_ms = text(math.min(to_int(deadline_ms, most_ms, most_ms), most_ms))
    end
    if RANK[held.state] > RANK[placement.state] then
      placement.state = held.state
      if held.state == 'active' then
        mark_active(cell, claim, placement)
      elseif held.state == 'ending' then
        placement.end_reason = placement.end_reason or held.end_reason
      end
    end
  end

  -- Return why the store has ended this placement, in an epoch that the host has not seen; nil if it has not. An active
  -- placement was ended only if a closing or a write-off says so: otherwise it may have ended because this host had not
  -- attested.
  local function ended_by_store(claim, held, host)
    for _, token in pairs({host.lost_token or false, host['dropped.' .. held.placed] or false}) do
      if token and not newer(held.token, token) then
        return 'void'
      end
    end
    local closed, last = claim.fields.closed, claim.tombstone
    if closed and not newer(held.root, closed) then
      return claim.fields.closed_reason
    end
    local had_ended = claim.exists and last and last.state == 'ended' and last.token
    return LEASED[held.state] and had_ended and not newer(held.placed, last.token) and 'void' or nil
  end

  -- Restore a placement from the journal, and the claim's fields with it. A pending claim still has all of its fields,
  -- and keeps them beside a placement that is ending.
  local function restore(cell, claim, entry, held, host)
    if not next(claim.placements) and not claim.fields.retry_root then
      for field, value in pairs(parse_claim(claim.id, claim.key, entry.record, true).fields) do
        claim.fields[field] = value -- an ended claim has kept only a few
      end
      claim.fields.voided_at_ms, claim.fields.clock_shift_ms = nil, nil
      if claim.fields.runtime_deadline_ms and clock_shift() ~= 0 then
        claim.fields.clock_shift_ms = text(clock_shift())
      end
    end
    held.end_reason = ended_by_store(claim, held, host) or held.end_reason
    held.state = held.end_reason and 'ending' or held.state
    if held.state ~= 'ending' then
      claim.fields.retry_root, claim.fields.retry_from, claim.fields.retry_reason = nil, nil, nil
    end
    add_placement(claim, held)
    if held.state == 'active' then
      mark_active(cell, claim, held)
    end
  end

  -- The reason of a placement that is ending is the one that the journal has from the store; void if it has none. It
  -- cannot tell that a claim is shelved, which may have been released since.
  local function held_placement(entry, host)
    local parsed = parse_claim(entry.id, entry.key, entry.record, true)
    local held = next(parsed.placements) and main_of(parsed) or parsed.tombstone
    held.host, held.state, held.token = host, entry.state, entry.token
    held.placed, held.root = entry.placed, entry.root
    held.expires_at_ms, held.inbox_id, held.op = nil, nil, nil
    if entry.state ~= 'ending' then
      held.end_reason = nil
    elseif held.end_reason == 'shelved' or not held.end_reason then
      held.end_reason = 'void'
    end
    return held
  end

  local function placement_on(claim, host, placed)
    local placement = claim.placements[placed]
    return placement and placement.host == host and placement
  end

  -- Return whether the placement's lease expired before the host accepted it: the store may have ended and forgotten
  -- it.
  local function was_never_taken_up(cell, entry)
    return entry.state == 'claimed' and to_int(entry.record.expires_at_ms, MOST, 0) <= cell.now_ms
  end

  -- Return the token that the placement of an entry must be newer than to be the last one of its claim; nil if the
  -- claim has ended, or if it ended so long ago that the store would have forgotten it.
  local function before_last(cell, claim, entry)
    local base = claim.fields.retry_from
    if not claim.exists then
      return entry.ended_ago_ms and entry.ended_ago_ms < cell.remember_ms and '' or nil
    end
    for placed in pairs(claim.placements) do
      base = (not base or newer(placed, base)) and placed or base
    end
    return base
  end

  -- End the claim, as work that was done must not be done again, although the store has lost the placement that did it.
  local ENDS_CLAIM = {released = true, ['work-ended'] = true, ['max-runtime'] = true}

  local function end_by_lost(cell, claim, entry)
    local base = entry.was_active and ENDS_CLAIM[entry.end_reason] and before_last(cell, claim, entry)
    if not base or not newer(entry.placed, base) then
      return
    end
    local root = claim.fields.retry_root or entry.placed
    close(claim, entry.placed, entry.end_reason)
    if not next(claim.placements) then
      claim.freed = {new_placement({host = ARG.host, placed = entry.placed, root = root, token = entry.token,
        op = entry.end_reason})}
    end
  end

  local function merge_ended(cell, claim, entry)
    local placement = placement_on(claim, ARG.host, entry.placed)
    if not placement then
      end_by_lost(cell, claim, entry)
    elseif not newer(placement.token, entry.token) then
      free(claim, placement, placement.end_reason or (entry.end_reason ~= '' and entry.end_reason or 'void'))
    end
  end

  local function merge_entry(cell, merged, claim, entry, host)
    if entry.word == 'ended' or entry.state == 'ending' then
      -- A member that had been active does not fail its gang when it ends; one that never was, or that ended with its
      -- gang, does. The journal decides which, whatever the store has.
      claim.leaves_gang = entry.was_active
    end
    if entry.word == 'ended' then
      merge_ended(cell, claim, entry)
    elseif entry.word == 'held' then
      local placement, held = placement_on(claim, ARG.host, entry.placed), held_placement(entry, ARG.host)
      merged.reported[entry.placed] = true
      if placement then
        local before = placement.state
        join(cell, claim, placement, held, merged.restoring and entry.record.runtime_deadline_ms)
        if before ~= 'active' and placement.state == 'active' then
          claim.fields.log = entry.record.log -- its confirmation was lost
        end
      elseif merged.restoring and not was_never_taken_up(cell, entry) then
        restore(cell, claim, entry, held, host)
      else
        merged.drop[#merged.drop + 1] = entry.placed
      end
    end
  end

  function merge(cell, entries, host, restoring)
    -- include: shift_claim
    local merged = {claims = {}, drop = {}, reported = {}, restoring = restoring}
    local by_id = {}
    for _, entry in ipairs(entries) do
      local claim = by_id[entry.id]
      if not claim then
        claim = load_claim(entry.key, entry.id)
        if restoring and has_deadline(claim) then
          shift_claim(claim)
        end
        by_id[entry.id] = claim
        merged.claims[#merged.claims + 1] = claim
      end
      merge_entry(cell, merged, claim, entry, host)
    end
    for i = #merged.claims, 1, -1 do
      if not (merged.claims[i].exists or merged.claims[i].freed or next(merged.claims[i].placements)) then
        table.remove(merged.claims, i) -- neither the store nor the journal has it
      end
    end
    return merged
  end
end
