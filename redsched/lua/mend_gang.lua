#!lua flags=allow-oom
-- mend_gang: a gang is waited for as long as members of it are not active, and no longer.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 gang, 5 events, then the claim of each id
-- ARGV  1 id of the gang, 2 reason, then the ids of its members
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
local gang, known = read_hash(KEYS[4])
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
  redis.call('DEL', KEYS[4])
elseif gang.waiting == text(waiting) and #left == 0 then
  return answer('SAME')
else
  redis.call('HSET', KEYS[4], 'waiting', text(waiting))
  in_chunks('HDEL', KEYS[4], left)
end
tell(cell, KEYS[5], ARGV[2], {'claim', ARGV[1]})
return answer('OK')
