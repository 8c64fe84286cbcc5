-- give_back(): a claim is not wanted any more. What no host has taken up ends, and everything does `at_once` or on a
-- host that was written off and has not come back; else its host is asked for it, once. Returns the reply.
-- `also` and `things` as for end_claim(); RETRY, and nothing written, where some of them are missing.
-- include: begin_ending
-- include: counted_in
-- include: end_claim
-- include: publish
local function give_back(cell, keys, claim, id, why, at_once, also, things)
  local ends = at_once or claim.state == 'claimed' or redis.call('HGET', keys.host, 'epoch') ~= cell.epoch
  local retry = {'RETRY', cell.epoch, cell.now_ms}
  if (ends or claim.state ~= 'ending') and lacks(things, claim, retry) then
    return retry
  end
  if ends then
    end_claim(cell, keys, claim, id, why, also, things)
  elseif claim.state ~= 'ending' then
    begin_ending(cell, keys, claim, id, why, things)
  end
  finish(cell)
  return {ends and 'OK' or 'ENDING', cell.epoch, cell.now_ms}
end
