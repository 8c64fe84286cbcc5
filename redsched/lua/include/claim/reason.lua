-- keep_reason(): store why a claim failed, expired or lost its work, as text, at its reason key. If the claim has
-- ended, the reason is kept as long as the rest of it. reason_of_ending(): the reason stored when the placement began
-- to end, or nil; and whether its work could not be stopped since. keep_stop_failure(): store why, in fields of its
-- own. forget_stop_failure(): the work is gone.
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
    return nil, false
  end
  local stored = redis.call('HMGET', object.key, 'op', 'token', 'text', 'stop_token')
  local ending = stored[1] == 'ending' and stored[2] == placement.token and stored[3] or nil
  return ending, stored[4] == placement.token
end

local function keep_stop_failure(cell, object, placement, said)
  redis.call('HSET', object.key, 'stop_at_ms', text(cell.now_ms), 'stop_host', placement.host, 'stop_token',
    placement.token, 'stop_text', said)
  redis.call('PEXPIRE', object.key, REASON_MS)
end

local function forget_stop_failure(object)
  redis.call('HDEL', object.key, 'stop_at_ms', 'stop_host', 'stop_token', 'stop_text')
end
