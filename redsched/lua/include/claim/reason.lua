-- keep_reason(): store why a claim failed, expired, lost its work or could not be stopped, as text, at its reason key.
-- If the claim has ended, the reason is kept as long as the rest of it. reason_of_ending(): the reason stored when the
-- placement began to end, or nil. forget_stop_failed(): the work is gone, so put back the reason of its ending, or
-- store none.
-- include: fence
local REASON_MS = 24 * 3600 * 1000 -- for a claim that has not ended

local function reason_of_ending(object, placement)
  if not object or placement.state ~= 'ending' then
    return nil
  end
  local noted = redis.call('HMGET', object.key, 'op', 'token', 'text', 'ending')
  if noted[2] ~= placement.token then
    return nil
  end
  return noted[1] == 'ending' and noted[3] or noted[1] == 'stop-failed' and noted[4] or nil
end

local function keep_reason(cell, claim, object, placement, said)
  local has_ended = not next(claim.placements) and claim.tombstone.state == 'ended'
  if object and said ~= '' then
    local ending
    if placement.op == 'stop-failed' then
      ending = reason_of_ending(object, placement)
      said = (ending and ending .. '; ' or '') .. 'it could not be stopped: ' .. said
    end
    redis.call('HSET', object.key, 'at_ms', text(cell.now_ms), 'host', placement.host, 'token', placement.token,
      'op', placement.op or '', 'text', said)
    if ending then
      redis.call('HSET', object.key, 'ending', ending)
    else
      redis.call('HDEL', object.key, 'ending')
    end
  end
  if object and (said ~= '' or has_ended) then
    redis.call('PEXPIRE', object.key, has_ended and cell.remember_ms or REASON_MS)
  end
end

local function forget_stop_failed(object, placement, ending)
  local noted = redis.call('HMGET', object.key, 'op', 'token')
  if noted[1] ~= 'stop-failed' or noted[2] ~= placement.token then
    return
  end
  if ending then
    redis.call('HSET', object.key, 'op', 'ending', 'text', ending)
    redis.call('HDEL', object.key, 'ending')
  else
    redis.call('DEL', object.key)
  end
end
