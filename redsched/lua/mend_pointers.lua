#!lua flags=allow-oom
-- mend_pointers: an ended claim is remembered without end while it is shelved, while something is to be done about it,
-- or while the claim that succeeded it lives. Note again what is to be done where that was lost, let others expire, and
-- have the set of the shelved claims name those and no other.
-- KEYS meta changes hosts deadlines chores shelved events ...
--   then claim and successor of each id (the claim again where it has none)
-- ARGV reason ...
--   then id and successor ('' for none) of each
-- Reply OK | SAME (nothing was wrong) | SETTLING (successors may still come back); epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: read_hash
-- include: tell
local cell = fence()
if not cell.settled then
  return {'SETTLING', cell.epoch, cell.now_ms}
end
local mended, chores, listed, unlisted, expired = {}, {}, {}, {}, {}

-- What is wrong with a claim: the list that it belongs on, and what that list takes of it.
local function fault(id, key, next_id, next_key)
  local claim = read_hash(key)
  local remembered = claim.state == 'ended' and redis.call('PTTL', key) == -1
  local shelved = claim.why == 'shelved' and (remembered or claim.state == 'ending')
  local is_listed = redis.call('SISMEMBER', KEY.shelved, id) == 1
  if is_listed and not shelved then
    return unlisted, {id}
  elseif not remembered or (claim.next or '') ~= next_id or redis.call('ZSCORE', KEY.chores, id) then
    return nil
  elseif next_id == '' and shelved then
    return listed, not is_listed and {id}
  end
  local follower = next_id ~= '' and redis.call('HMGET', next_key, 'state', 'why') or {}
  if follower[1] and (follower[1] ~= 'ended' or follower[2] == 'shelved') then
    return nil
  elseif is_listed or claim.next or claim.origin or claim.former or claim.gang or claim.quota then
    return chores, {text(cell.now_ms), id}
  end
  return expired, {key}
end

for i = 2, #ARGV, 2 do
  local list, values = fault(ARGV[i], KEYS[6 + i], ARGV[i + 1], KEYS[7 + i])
  for _, value in ipairs(list and values or {}) do
    list[#list + 1] = value
  end
  if list and values then
    mended[#mended + 1] = ARGV[i]
  end
end

-- Every check is passed. From here on, only writes: what is removed last may be the last of its key.
in_chunks('ZADD', KEY.chores, chores)
in_chunks('SADD', KEY.shelved, listed)
in_chunks('SREM', KEY.shelved, unlisted)
for _, id in ipairs(mended) do
  tell(cell, KEY.events, ARG.reason, {'claim', id})
end
for _, key in ipairs(expired) do
  redis.call('PEXPIRE', key, cell.remember_ms)
end
return {#mended > 0 and 'OK' or 'SAME', cell.epoch, cell.now_ms}
