#!lua flags=allow-oom
-- duty: what one scheduler is to do at a time. Whoever has it keeps it by asking again; for none it lapses.
-- KEYS  1 duty
-- ARGV  1 scheduler, 2 for how long in ms (0: it gives the duty up)
-- Reply OK (it is yours; or given up) | HELD (another has it)
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return {'HELD'}
elseif ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return {'OK'}
