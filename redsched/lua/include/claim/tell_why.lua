-- tell_why(): add to an entry of the feed why a placement is ending or has ended, and its reason in words. Whoever
-- reads the claim later sees what it is by then. leaving_reason(): why claims are moved off a host, or nil.
local LEAVING = {evacuate = 'was written off', move = 'is being drained'}

local function leaving_reason(host, host_key)
  local how = LEAVING[redis.call('HGET', host_key, 'leaving')]
  return how and 'host ' .. host .. ' ' .. how
end

local function tell_why(claim, placement, host, fields)
  local has_ended = not claim.placements[placement.placed]
  local why = has_ended and placement.op or placement.state == 'ending' and placement.why
  local reason = placement.reason or (why == 'moved' and leaving_reason(placement.host, host.key))
  for name, value in pairs({why = why or nil, reason = reason or nil}) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
