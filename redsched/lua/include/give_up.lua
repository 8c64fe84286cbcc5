-- An owner releases one of the claims that go by his id. Where that means the whole, give_up() notes it with the claim
-- of his id (`key`): whatever was placed under it is not wanted, also what comes up or comes back later. What the id
-- leads to is a chore then, for another one may have taken its place. Uses KEYS 5 chores.
--
-- Does a claim stand for the whole? It has succeeded the former, or has come up, or that one has failed; else only its
-- own move is called off.
local function stands_for_all(claim)
  return claim.state == 'active' or claim.arrived or claim.former_why == 'failed' or not (claim.former or claim.fell)
end

-- What is shelved is left to forget_shelved.lua.
local function give_up(cell, key, id)
  local root = redis.call('HMGET', key, 'state', 'why', 'next')
  if root[1] and root[2] ~= 'shelved' then
    redis.call('HSET', key, 'final', '1')
    redis.call('ZADD', KEYS[5], text(cell.now_ms), root[3] or id)
  end
end
