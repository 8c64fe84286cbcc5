-- add_end_reason(): append to a feed entry why a placement is ending or has ended, and the reason as text, such as who
-- has released it, if that is not who made it. A reader that reads the claim later sees only its state at that time.
-- leaving_reason(): why claims are moved off a host, as text and as `from_why` of a placement, or nil.
local LEAVING = {evacuate = {'was written off', 'written-off'}, move = {'is being drained', 'drained'}}

local function leaving_reason(host, host_key)
  local how = LEAVING[redis.call('HGET', host_key, 'draining')]
  if how then
    return 'host ' .. host .. ' ' .. how[1], how[2]
  end
end

local function add_end_reason(claim, placement, host, fields)
  local has_ended = not claim.placements[placement.placed]
  local end_reason = has_ended and placement.op or placement.state == 'ending' and placement.end_reason
  local reason = placement.reason or (end_reason == 'moved' and leaving_reason(placement.host, host.key))
  local closed_by = claim.fields.closed_by
  if not reason and closed_by and closed_by ~= claim.fields.actor and closed_by ~= 'scheduler'
    and end_reason == claim.fields.closed_reason then
    reason = end_reason .. ' by ' .. closed_by
  end
  for name, value in pairs({end_reason = end_reason or nil, reason = reason or nil}) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
