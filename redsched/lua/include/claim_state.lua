-- obstacle(): why nothing may be said about this claim now, or nil. The host's attestation comes first: before it, "no
-- such claim" would only mean that the store has forgotten, and an agent that believed it would stop work that is
-- rightly there.
-- A claim that ended with its host, or whose host was removed later, has nobody left to ask; a host that is being
-- evacuated is not asked in later epochs either, until it comes back.
-- Without `token` any placing is meant.
local function obstacle(cell, keys, claim, host, token)
  local attested = redis.call('HMGET', keys.host, 'epoch', 'written_off', 'leaving')
  local evacuated = attested[1] == 'lost' and attested[3] == 'evacuate'
  local removed = claim.state == 'ended' and redis.call('EXISTS', keys.host) == 0
  if attested[1] ~= cell.epoch and attested[2] ~= cell.epoch and not (removed or evacuated) then
    return 'ATTEST'
  end
  if not claim.state then
    return 'UNKNOWN'
  end
  if claim.host ~= host or (token and claim.token ~= token) then
    return 'STALE'
  end
  return nil
end
