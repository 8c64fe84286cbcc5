#!lua flags=allow-oom
-- forget_shelved: a shelved claim, or one that is being shelved, is not wanted any more: it has been released then.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 shelved, 8 claim of the id by which its owner
--       knows it, where all that goes by that is given up; else the same as 6
-- ARGV  1 id
-- Reply OK | ENDING (its host has still to stop the work) | SAME (it is not shelved) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: give_up
local cell = fence()
local claim = redis.call('HMGET', KEYS[6], 'state', 'why', 'origin', 'next')
if claim[2] ~= 'shelved' then
  return {claim[1] and 'SAME' or 'UNKNOWN', cell.epoch, cell.now_ms}
end
redis.call('SREM', KEYS[7], ARGV[1])
redis.call('HSET', KEYS[6], 'why', 'released')
if KEYS[8] ~= KEYS[6] then
  give_up(cell, KEYS[8], ARGV[1])
end
if claim[1] == 'ending' then
  return {'ENDING', cell.epoch, cell.now_ms}
elseif claim[3] or claim[4] then
  redis.call('ZADD', KEYS[5], text(cell.now_ms), ARGV[1])
else
  redis.call('PEXPIRE', KEYS[6], cell.remember_ms)
end
return {'OK', cell.epoch, cell.now_ms}
