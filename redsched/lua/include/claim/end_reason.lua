-- add_end_reason(): append to a feed entry why a placement is ending or has ended, and the reason as text. A reader
-- that reads the claim later sees only its state at that time. leaving_reason(): why claims are moved off a host, or
-- nil.
local LEAVING = {evacuate = 'was written off', move = 'is being drained'}

local function leaving_reason(host, host_key)
  local how = LEAVING[redis.call('HGET', host_key, 'draining')]
  return how and 'host ' .. host .. ' ' .. how
end

local function add_end_reason(claim, placement, host, fields)
  local has_ended = not claim.placements[placement.placed]
  local end_reason = has_ended and placement.op or placement.state == 'ending' and placement.end_reason
  local reason = placement.reason or (end_reason == 'moved' and leaving_reason(placement.host, host.key))
  for name, value in pairs({end_reason = end_reason or nil, reason = reason or nil}) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
