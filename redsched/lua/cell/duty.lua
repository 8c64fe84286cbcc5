#!lua flags=allow-oom
-- duty: take, renew or give up a duty that one scheduler has at a time. It lapses unless its holder renews it in time.
-- KEYS duty
-- ARGV scheduler for_ms
--   for_ms  0: give it up
-- Reply OK (the scheduler has it, or has given it up) | IN_USE (another one has it)
local holder = redis.call('GET', KEY.duty)
if holder and holder ~= ARG.scheduler then
  return {'IN_USE'}
elseif ARG.for_ms == '0' then
  redis.call('DEL', KEY.duty)
else
  redis.call('SET', KEY.duty, ARG.scheduler, 'PX', ARG.for_ms)
end
return {'OK'}
