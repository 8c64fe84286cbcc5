#!lua flags=allow-oom
-- repair_gang: recount the members of a gang, and those for which it waits because they are not active yet. A gang that
-- waits for none is deleted, unless it has failed.
-- KEYS meta changes hosts gang events ...
-- ARGV id reason ...
-- Further keys: the claim of each member. Then the ids of its members.
-- Reply OK | ALREADY_DONE (nothing was wrong) | SETTLING (hosts may still restore its members) | RETRY (it has other
--   members); epoch, now_ms
-- include: gangs
-- include: in_chunks
-- include: log_event
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local gang, known = read_hash(KEY.gang)
if not known then
  return answer('ALREADY_DONE')
elseif not cell.settled then
  return answer('SETTLING')
end
local named, left, members, waiting = {}, {}, 0, 0
for i = 3, #ARGV do
  named['member.' .. ARGV[i]] = true
  local phase = phase_of(load_claim(KEYS[3 + i], ARGV[i]))
  if gang['member.' .. ARGV[i]] and phase ~= 'out' then
    members, waiting = members + 1, waiting + (phase == 'leased' and 1 or 0)
  elseif gang['member.' .. ARGV[i]] then
    left[#left + 1] = 'member.' .. ARGV[i]
  end
end
for field in pairs(gang) do
  if string.sub(field, 1, 7) == 'member.' and not named[field] then
    return answer('RETRY')
  end
end
if members == 0 or (waiting == 0 and not has_failed({hash = gang})) then
  redis.call('DEL', KEY.gang)
elseif gang.waiting == text(waiting) and #left == 0 then
  return answer('ALREADY_DONE')
else
  redis.call('HSET', KEY.gang, 'waiting', text(waiting))
  in_chunks('HDEL', KEY.gang, left)
end
log_event(cell, KEY.events, ARG.reason, {'claim', ARG.id})
return answer('OK')
