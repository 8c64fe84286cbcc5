-- keep_reason(): note why a claim failed, expired or lost its work, in words, at its reason key. `has_ended`: it is
-- remembered as long as what is left of the claim, also where nothing new is said.
-- include: fence
local REASON_MS = 24 * 3600 * 1000 -- of a claim that goes on, which nobody has to look after then

local function keep_reason(cell, key, host, token, said, has_ended)
  if said ~= '' then
    redis.call('HSET', key, 'at_ms', text(cell.now_ms), 'host', host, 'token', token, 'text', said)
  end
  if said ~= '' or has_ended then
    redis.call('PEXPIRE', key, has_ended and cell.remember_ms or REASON_MS)
  end
end
