#!lua flags=allow-oom
-- mend_gang: have a gang wait for those of its members that are not active yet, and delete it where there are none.
-- KEYS meta changes hosts gang events ...
--   then the claim of each member
-- ARGV gang reason ...
--   then the ids of the members
-- Reply OK | SAME (nothing was wrong) | SETTLING (its members may still come back) | RETRY (it has other members);
--   epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: leased
-- include: read_hash
-- include: tell
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local gang, known = read_hash(KEY.gang)
if not known then
  return answer('SAME')
elseif not cell.settled then
  return answer('SETTLING')
end
local named, left, members, waiting = {}, {}, 0, 0
for i = 3, #ARGV do
  named['member.' .. ARGV[i]] = true
  local claim = read_hash(KEYS[3 + i])
  if gang['member.' .. ARGV[i]] and (LEASED[claim.state] or claim.state == 'active') then
    members, waiting = members + 1, waiting + (LEASED[claim.state] and 1 or 0)
  elseif gang['member.' .. ARGV[i]] then
    left[#left + 1] = 'member.' .. ARGV[i]
  end
end
for field in pairs(gang) do
  if string.sub(field, 1, 7) == 'member.' and not named[field] then
    return answer('RETRY')
  end
end
if members == 0 or (waiting == 0 and not gang.why) then
  redis.call('DEL', KEY.gang)
elseif gang.waiting == text(waiting) and #left == 0 then
  return answer('SAME')
else
  redis.call('HSET', KEY.gang, 'waiting', text(waiting))
  in_chunks('HDEL', KEY.gang, left)
end
tell(cell, KEY.events, ARG.reason, {'claim', ARG.gang})
return answer('OK')
