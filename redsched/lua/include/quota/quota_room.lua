-- quota_refusal(): return why a claim may not use this much more (class -> amount) of its project's quota, or nil. A
-- call that needs no more of any limited class is refused only if a sum would exceed the largest amount, beyond which
-- it is not exact: that is then the limit. `limited`: there are several cells, and the first has limits.
--   OVER_QUOTA, then class, limit or share of this cell, used and requested amount of each class that would be exceeded
--   SETTLING (hosts may still restore claims that count)
--   UNSHARED (there are several cells, and this one has no share of the limits in this epoch)
-- include: read_hash
-- include: object_counts
-- include: to_int
local function quota_refusal(cell, quota, more, limited)
  quota.hash = quota.hash or read_hash(quota.key)
  local hash, grows, over = quota.hash, false, nil
  local lost = limited and not hash.cells
  for class, amount in pairs(more) do
    if amount > 0 then
      local is_limited = lost or hash['limit.' .. class]
      local limit = is_limited and to_int(hash[(hash.cells and 'share.' or 'limit.') .. class], 0, 0) or MOST
      local used = number_of(quota, 'used.' .. class)
      grows = grows or is_limited
      if not (used + amount <= limit) then
        over = over or {'OVER_QUOTA', cell.epoch, cell.now_ms}
        for _, word in ipairs({class, limit, used, amount}) do
          over[#over + 1] = word
        end
      end
    end
  end
  if grows and not cell.settled then
    return {'SETTLING', cell.epoch, cell.now_ms}
  elseif grows and (lost or hash.cells and hash.share_epoch ~= cell.epoch) then
    return {'UNSHARED', cell.epoch, cell.now_ms}
  end
  return over
end
