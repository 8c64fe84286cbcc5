-- shift_claim(): move the deadlines of a claim and of its placements to the present clock of the store.
-- include: claim_record
-- include: clock_shift
local function shift_claim(claim)
  local former = claim.fields.clock_shift_ms
  shift_times(claim.fields, {'runtime_deadline_ms'})
  for _, placement in pairs(claim.placements) do
    placement.clock_shift_ms = former
    shift_times(placement, {'move_deadline_ms'})
    placement.clock_shift_ms = nil
  end
end

-- Return whether a claim has any.
local function has_deadline(claim)
  for _, placement in pairs(claim.placements) do
    if placement.move_deadline_ms then
      return true
    end
  end
  return claim.fields.runtime_deadline_ms ~= nil
end
