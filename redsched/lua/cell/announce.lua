#!lua flags=allow-oom
-- announce: record that a scheduler runs and how far its replica is behind, for people who ask for the cell's status.
-- It works in any epoch, also while the store is full. Announcements that were not repeated in time are removed.
-- KEYS schedulers
-- ARGV scheduler kept_ms ...
--   kept_ms  how long an announcement is kept that is not repeated
--   then its fields, each with its value; none: the scheduler stops, and its announcement is removed
-- Reply OK
-- include: in_chunks
-- include: text
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local former, gone, stale = redis.call('HGETALL', KEY.schedulers), {}, {}
for i = 1, #former, 2 do
  local scheduler = string.match(former[i], '^at_ms%.(.*)')
  if scheduler and former[i + 1] + ARG.kept_ms < now_ms then
    gone[scheduler] = true
  end
end
gone[ARG.scheduler] = #ARGV == 2 or nil
for i = 1, #former, 2 do
  if gone[string.match(former[i], '%.(.*)')] then
    stale[#stale + 1] = former[i]
  end
end
if #ARGV > 2 then
  redis.call('HSET', KEY.schedulers, 'at_ms.' .. ARG.scheduler, text(now_ms))
  for i = 3, #ARGV, 2 do
    redis.call('HSET', KEY.schedulers, ARGV[i] .. '.' .. ARG.scheduler, ARGV[i + 1])
  end
  redis.call('PEXPIRE', KEY.schedulers, ARG.kept_ms)
end
-- Last, because a script touches no key that it may have removed.
in_chunks('HDEL', KEY.schedulers, stale)
return {'OK'}
