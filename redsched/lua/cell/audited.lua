#!lua flags=allow-oom
-- audited: replace what the last check of the cell by a scheduler has found, for people who ask for the cell's status.
-- KEYS audit
-- ARGV kept_ms ...
--   kept_ms  how long it is kept if no check follows
--   then its fields, each with its value
-- Reply OK
-- include: in_chunks
-- include: text
local time, fields, stale = redis.call('TIME'), {at_ms = true}, {}
for i = 2, #ARGV, 2 do
  fields[ARGV[i]] = true
  redis.call('HSET', KEY.audit, ARGV[i], ARGV[i + 1])
end
redis.call('HSET', KEY.audit, 'at_ms', text(time[1] * 1000 + (time[2] - time[2] % 1000) / 1000))
redis.call('PEXPIRE', KEY.audit, ARG.kept_ms)
local former = redis.call('HGETALL', KEY.audit)
for i = 1, #former, 2 do
  if not fields[former[i]] then
    stale[#stale + 1] = former[i]
  end
end
in_chunks('HDEL', KEY.audit, stale)
return {'OK'}
