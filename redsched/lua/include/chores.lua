-- left_to_do(): does a claim's gang still call for a chore? It is cleared once that has ended; the claim's succession
-- is done by succeed.lua. What is shelved is not forgotten, nor an owner's id while what it points to lives.
local OVER = {ending = true, ended = true}

local function left_to_do(claim)
  return OVER[claim.state] and claim.gang
end

-- Nothing is left to be done about a claim: it is no chore any more, and forgotten in its time unless it `stays`.
local function close_chore(cell, key, id, claim, stays)
  redis.call('ZREM', KEYS[5], id)
  if claim.state ~= 'ended' or claim.why == 'shelved' then
    return
  elseif stays then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIRE', key, cell.remember_ms)
  end
end
