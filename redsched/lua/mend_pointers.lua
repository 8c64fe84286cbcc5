#!lua flags=allow-oom
-- mend_pointers: an ended claim is remembered without end while it is shelved, while something is to be done about it,
-- or while the claim that succeeded it lives. What is to be done is noted again where that was lost; others are
-- forgotten in their time. The set of the shelved ones names those and no other.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 shelved, 7 events, then claim and successor of each id
--       (itself where it has none)
-- ARGV  1 reason, then id and successor ('' for none) of each
-- Reply OK | SAME (nothing was wrong) | SETTLING (successors may still come back); epoch, now_ms
-- include: fence
-- include: read_hash
-- include: tell
local cell, mended = fence(), 0
if not cell.settled then
  return {'SETTLING', cell.epoch, cell.now_ms}
end
local function mend(id, key, next_id, next_key)
  local claim = read_hash(key)
  local remembered = claim.state == 'ended' and redis.call('PTTL', key) == -1
  local shelved = claim.why == 'shelved' and (remembered or claim.state == 'ending')
  local listed = redis.call('SISMEMBER', KEYS[6], id) == 1
  if listed and not shelved then
    redis.call('SREM', KEYS[6], id)
    return true
  elseif not remembered or (claim.next or '') ~= next_id or redis.call('ZSCORE', KEYS[5], id) then
    return false
  elseif next_id == '' and shelved then
    return redis.call('SADD', KEYS[6], id) == 1
  end
  local follower = next_id ~= '' and redis.call('HMGET', next_key, 'state', 'why') or {}
  if follower[1] and (follower[1] ~= 'ended' or follower[2] == 'shelved') then
    return false
  elseif listed or claim.next or claim.origin or claim.former or claim.gang then
    redis.call('ZADD', KEYS[5], text(cell.now_ms), id)
  else
    redis.call('PEXPIRE', key, cell.remember_ms)
  end
  return true
end
for i = 2, #ARGV, 2 do
  if mend(ARGV[i], KEYS[6 + i], ARGV[i + 1], KEYS[7 + i]) then
    mended = mended + 1
    tell(cell, KEYS[7], ARGV[1], {'claim', ARGV[i]})
  end
end
return {mended > 0 and 'OK' or 'SAME', cell.epoch, cell.now_ms}
