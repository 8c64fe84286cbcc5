#!lua
-- summary: replace the cell's summary, which schedulers without a replica of the cell read. It is not written in
-- another epoch than that of the columns that it was made from. It lapses unless it is written again.
-- KEYS meta changes hosts summary
-- ARGV epoch kept_ms ...
--   then its fields, each with its value
-- Reply OK | WRONG_EPOCH; epoch, now_ms
-- include: fence
local cell = fence()
if cell.epoch ~= ARG.epoch then
  return {'WRONG_EPOCH', cell.epoch, cell.now_ms}
end
local fields, stale = {at_ms = true}, {}
for i = 3, #ARGV, 2 do
  fields[ARGV[i]] = true
end
local former = redis.call('HGETALL', KEY.summary)
for i = 1, #former, 2 do
  if not fields[former[i]] then
    stale[#stale + 1] = former[i]
  end
end
for first = 3, #ARGV, 1000 do
  redis.call('HSET', KEY.summary, unpack(ARGV, first, math.min(first + 999, #ARGV)))
end
redis.call('HSET', KEY.summary, 'at_ms', text(cell.now_ms))
-- Not deleted as a whole, because a script touches no key that it has removed.
for first = 1, #stale, 1000 do
  redis.call('HDEL', KEY.summary, unpack(stale, first, math.min(first + 999, #stale)))
end
redis.call('PEXPIRE', KEY.summary, ARG.kept_ms)
return {'OK', cell.epoch, cell.now_ms}
