-- wrong_leases(): return the claims of these placements whose deadline does not match their leases: it is missing,
-- another one, or present although no lease runs. A placement without the lease that it should have gets a fresh one.
-- write_leases(): write the corrected deadlines.
-- include: claim_record
-- include: due
-- include: fence
-- include: leased
local function wrong_leases(cell, held, lease_ms)
  local wrong, seen = {}, {}
  for _, entry in ipairs(held) do
    local claim, placement = entry.claim, entry.placement
    local leased = LEASED[placement.state]
    local lacks = leased and not to_int(placement.expires_at_ms, nil, nil)
    if lacks then
      placement.expires_at_ms = text(cell.now_ms + lease_ms)
    elseif not leased and placement.expires_at_ms then
      placement.expires_at_ms, lacks = nil, true
    end
    local deadline = redis.call('ZSCORE', KEY.deadlines, claim.id)
    local differs = tonumber(deadline or '-1') ~= (deadline_of(claim) or -1)
    if (lacks or differs) and not seen[claim] then
      seen[claim] = true
      wrong[#wrong + 1] = claim
    end
  end
  return wrong
end

local function write_leases(wrong)
  local gone = {}
  for _, claim in ipairs(wrong) do
    local deadline = deadline_of(claim)
    if deadline then
      redis.call('ZADD', KEY.deadlines, text(deadline), claim.id)
    else
      gone[#gone + 1] = claim.id
    end
    write_claim_record(claim)
  end
  in_chunks('ZREM', KEY.deadlines, gone)
end
