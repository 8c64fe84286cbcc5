#!lua flags=allow-oom
-- mend_gang: a gang is waited for as long as members of it are not active, and no longer.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 gang, 5 events, then the claim of each id
-- ARGV  1 id of the gang, 2 reason, then the ids of its members
-- Reply OK | SAME (nothing was wrong) | SETTLING (its members may still come back) | RETRY (it has other members);
--   epoch, now_ms
-- include: fence
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
local named, living, waiting = {waiting = true, why = true}, 0, 0
for i = 3, #ARGV do
  named[ARGV[i]] = true
  local claim = read_hash(KEYS[3 + i])
  if gang[ARGV[i]] and claim.state and claim.state ~= 'ended' then
    living = living + 1
    waiting = waiting + (claim.state == 'active' and 0 or 1)
  end
end
for id in pairs(gang) do
  if not named[id] then
    return answer('RETRY')
  end
end
if living == 0 or (waiting == 0 and not gang.why) then
  redis.call('DEL', KEYS[4])
elseif gang.why or gang.waiting == text(waiting) then
  return answer('SAME')
else
  redis.call('HSET', KEYS[4], 'waiting', text(waiting))
end
tell(cell, KEYS[5], ARGV[2], {'claim', ARGV[1]})
return answer('OK')
