-- known_outcome(): return the reply of claim.lua that follows from the ids and the age of the decision, without reading
-- any host; or nil.
-- include: claim_decision

-- Return the claims that members of the call have already, and whether a member was voided here since the decision.
local function earlier_claims(call)
  local claims, moved = {}, false
  for _, member in ipairs(call.members) do
    local claim = redis.call('HMGET', member.key, 'state', 'digest', 'host', 'token', 'expires_at_ms', 'voided_at_ms',
      'owner')
    -- The id was voided here for use in another cell: refuse decisions made before that, allow later ones.
    member.reopened = claim[6] and tonumber(ARG.now_ms) > tonumber(claim[6])
    moved = moved or (claim[6] and not member.reopened)
    if claim[1] and not claim[6] then
      claims[#claims + 1] = claim
    end
  end
  return claims, moved
end

-- Return the reply if some members have claims already.
local function repeated(cell, call, claims)
  local reply, ended = {'ALREADY_DONE', cell.epoch, cell.now_ms, #claims}, false
  for _, claim in ipairs(claims) do
    local is_other = claim[2] ~= ARG.digest and not (claim[1] == 'ended' and not claim[2]) -- see end_by_lost
    if is_other or (ARG.own_only == '1' and claim[7] and claim[7] ~= ARG.owner) then
      return {'CONFLICT', cell.epoch, cell.now_ms}
    end
    ended = ended or claim[1] == 'ended' or claim[1] == 'ending'
    for _, value in ipairs({claim[3], claim[4], claim[5] or '', claim[1], ''}) do
      reply[#reply + 1] = value
    end
  end
  if #claims < #call.members then
    -- A caller's own id that is unknown here may be running on a host that has not attested yet.
    return {ARG.fresh ~= '1' and not cell.settled and 'SETTLING' or 'CONFLICT', cell.epoch, cell.now_ms}
  end
  for _, member in ipairs(ARG.call_id ~= '' and call.members or {}) do
    redis.call('HSET', member.key, 'call_id', ARG.call_id) -- of ended ones too
  end
  return ended and {'ENDED', cell.epoch, cell.now_ms} or reply
end

local function known_outcome(cell, call)
  if redis.call('EXISTS', unpack(KEYS, 8, 7 + call.member_count)) == 0 then
    return outdated(cell, false)
  end
  local claims, moved = earlier_claims(call)
  if #claims > 0 then
    return repeated(cell, call, claims)
  end
  return outdated(cell, moved)
end
