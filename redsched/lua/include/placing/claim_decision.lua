-- outdated(): return the reply that says why a decision can no longer be carried out, or nil. `moved`: one of its ids
-- was voided here, for use in another cell, since the decision.
local function outdated(cell, call, moved)
  local function answer(outcome)
    return {outcome, cell.epoch, cell.now_ms}
  end
  if call.epoch ~= cell.epoch then
    return answer('WRONG_EPOCH')
  end
  -- A decision from the future is refused too: it would outlive the tombstone that stops its late copies. Within an
  -- epoch the store's own time goes back by 1 s at most.
  local age_ms = cell.now_ms - call.decided_at_ms
  if moved or not (age_ms <= cell.remember_ms and age_ms >= -1000) then
    return answer('EXPIRED')
  end
  if not call.fresh and not cell.settled then
    return answer('SETTLING')
  end
  return cell.declared_seq > call.seen_seq and answer('STALE_VIEW') or nil
end
