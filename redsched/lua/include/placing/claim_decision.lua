-- outdated(): return the reply that says why a decision can no longer be carried out, or nil. `moved`: one of its ids
-- was voided here, for use in another cell, since the decision.
local function outdated(cell, moved)
  if ARG.epoch ~= cell.epoch then
    return {'WRONG_EPOCH', cell.epoch, cell.now_ms}
  end
  -- A decision from the future is refused too: it would outlive the tombstone that stops its late copies. Within an
  -- epoch the store's own time goes back by 1 s at most.
  local age_ms = cell.now_ms - ARG.now_ms
  if moved or not (age_ms <= cell.remember_ms and age_ms >= -1000) then
    return {'EXPIRED', cell.epoch, cell.now_ms}
  end
  if ARG.fresh ~= '1' and not cell.settled then
    return {'SETTLING', cell.epoch, cell.now_ms}
  end
  return cell.declared_seq - ARG.seen_seq > 0 and {'STALE_VIEW', cell.epoch, cell.now_ms} or nil
end
