-- known_outcome(): return the reply of claim.lua that follows from the ids and the age of the decision, without reading
-- any host; or nil.
-- include: claim_decision
local function known_outcome(cell, call)
  local function answer(outcome)
    return {outcome, cell.epoch, cell.now_ms}
  end
  local known, ended, moved, reply = 0, false, false, {'ALREADY_DONE', cell.epoch, cell.now_ms, #call.members}
  for _, member in ipairs(call.members) do
    local claim = redis.call('HMGET', member.key, 'state', 'digest', 'host', 'token', 'expires_at_ms', 'voided_at_ms')
    -- The id was voided here for use in another cell: refuse decisions made before that, allow later ones.
    member.reopened = claim[6] and call.decided_at_ms > tonumber(claim[6])
    moved = moved or (claim[6] and not member.reopened)
    if claim[1] and not claim[6] then
      if claim[2] ~= call.digest then
        return answer('CONFLICT')
      end
      known = known + 1
      ended = ended or claim[1] == 'ended'
      reply[#reply + 1] = claim[3]
      reply[#reply + 1] = claim[4]
      reply[#reply + 1] = claim[5] or ''
      reply[#reply + 1] = claim[1]
      reply[#reply + 1] = ''
    end
  end
  if known == #call.members and known > 0 then
    for _, member in ipairs(call.call_id ~= '' and call.members or {}) do
      redis.call('HSET', member.key, 'call_id', call.call_id) -- of ended ones too
    end
    return ended and answer('ENDED') or reply
  end
  -- A caller's own id that is unknown here may be running on a host that has not attested yet.
  local may_be_unattested = not call.fresh and not cell.settled
  if known > 0 then
    return answer(may_be_unattested and 'SETTLING' or 'CONFLICT')
  end
  return outdated(cell, call, moved)
end
