-- keep_reason(): store why a claim failed, expired or lost its work, as text, at its reason key. If the claim has
-- ended, the reason is kept as long as the rest of it. reason_of_ending(): the reason stored when the placement began
-- to end, or nil.
-- include: fence
local REASON_MS = 24 * 3600 * 1000 -- for a claim that has not ended

local function keep_reason(cell, claim, object, placement, said)
  local has_ended = not next(claim.placements) and claim.tombstone.state == 'ended'
  if object and said ~= '' then
    redis.call('HSET', object.key, 'at_ms', text(cell.now_ms), 'host', placement.host, 'token', placement.token,
      'op', placement.op or '', 'text', said)
  end
  if object and (said ~= '' or has_ended) then
    redis.call('PEXPIRE', object.key, has_ended and cell.remember_ms or REASON_MS)
  end
end

local function reason_of_ending(object, placement)
  if not object or placement.state ~= 'ending' then
    return nil
  end
  local noted = redis.call('HMGET', object.key, 'op', 'token', 'text')
  return noted[1] == 'ending' and noted[2] == placement.token and noted[3] or nil
end
