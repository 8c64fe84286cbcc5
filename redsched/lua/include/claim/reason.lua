-- keep_reason(): store why a claim failed, expired or lost its work, as text, at its reason key. If the claim has
-- ended, the reason is kept as long as the rest of it. reason_of_ending(): the reason stored when the placement began
-- to end, or nil; and whether it could not be stopped since. keep_stop_failure(): store why the work of a placement
-- that is ending could not be stopped, behind the reason of its ending. forget_stop_failure(): the work is gone, so put
-- that reason back, or store none.
-- include: fence
local REASON_MS = 24 * 3600 * 1000 -- for a claim that has not ended

local function write_reason(cell, object, placement, op, said)
  redis.call('HSET', object.key, 'at_ms', text(cell.now_ms), 'host', placement.host, 'token', placement.token,
    'op', op, 'text', said)
  redis.call('HDEL', object.key, 'ending')
end

local function keep_reason(cell, claim, object, placement, said)
  local has_ended = not next(claim.placements) and claim.tombstone.state == 'ended'
  if object and said ~= '' then
    write_reason(cell, object, placement, placement.op or '', said)
  end
  if object and (said ~= '' or has_ended) then
    redis.call('PEXPIRE', object.key, has_ended and cell.remember_ms or REASON_MS)
  end
end

local function reason_of_ending(object, placement)
  if not object or placement.state ~= 'ending' then
    return nil, false
  end
  local noted = redis.call('HMGET', object.key, 'op', 'token', 'text', 'ending')
  if noted[2] ~= placement.token then
    return nil, false
  elseif noted[1] == 'stop-failed' then
    return noted[4] or nil, true
  end
  return noted[1] == 'ending' and noted[3] or nil, false
end

local function keep_stop_failure(cell, object, placement, said)
  local ending = reason_of_ending(object, placement)
  local why = (ending and ending .. '; ' or '') .. 'it could not be stopped: ' .. said
  write_reason(cell, object, placement, 'stop-failed', why)
  if ending then
    redis.call('HSET', object.key, 'ending', ending)
  end
  redis.call('PEXPIRE', object.key, REASON_MS)
end

local function forget_stop_failure(object, ending)
  if ending then
    redis.call('HSET', object.key, 'op', 'ending', 'text', ending)
    redis.call('HDEL', object.key, 'ending')
  else
    redis.call('DEL', object.key)
  end
end
