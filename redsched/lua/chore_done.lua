#!lua flags=allow-oom
-- chore_done: what was to be done about a claim has been done, or cannot be done yet. Its succession is not said here:
-- succeed.lua does it, and says so itself.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim
-- ARGV  1 id, 2 in how many ms to try again (0: it is done), then what was done: gang
-- Reply OK | SAME (it was no chore) | EARLY (more is left, or it is to be tried again); epoch, now_ms
-- include: chores
-- include: fence
-- include: read_hash
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local claim, known = read_hash(KEYS[6])
local noted = redis.call('ZSCORE', KEYS[5], ARGV[1])
if noted and ARGV[2] ~= '0' then
  redis.call('ZADD', KEYS[5], text(cell.now_ms + tonumber(ARGV[2])), ARGV[1])
  return answer('EARLY')
end
for i = 3, #ARGV do
  redis.call('HDEL', KEYS[6], ARGV[i])
  claim[ARGV[i]] = nil
end
local succession = claim.former or (claim.state == 'ended' and (claim.next or claim.origin))
if known and (left_to_do(claim) or (noted and succession)) then
  return answer('EARLY')
elseif not noted then
  return answer('SAME')
end
close_chore(cell, KEYS[6], ARGV[1], claim, false)
return answer('OK')
