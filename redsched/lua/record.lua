#!lua
-- record: put events into the cell's event log. They were made from the changes that follow the ones recorded last;
-- who meanwhile lost its turn to another recorder, or sends a second time, is told so: nothing is in the log twice.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 events, 5 recorder
-- ARGV  1 entry of the feed recorded last ('' for none), 2 the last one of these and 3 its seq, 4 keep_ms, 5 most
--       events, 6 number of events, then each as number of values, field, value ...
-- Reply OK | RETRY (the last one recorded is another); epoch, now_ms
-- include: fence
local cell = fence()
if (redis.call('HGET', KEYS[5], 'entry') or '') ~= ARGV[1] then
  return {'RETRY', cell.epoch, cell.now_ms}
end
local at = 6
for _ = 1, tonumber(ARGV[6]) do
  local values = tonumber(ARGV[at + 1])
  redis.call('XADD', KEYS[4], '*', unpack(ARGV, at + 2, at + 1 + values))
  at = at + 1 + values
end
redis.call('HSET', KEYS[5], 'entry', ARGV[2], 'seq', ARGV[3])
redis.call('XTRIM', KEYS[4], 'MAXLEN', '~', ARGV[5])
redis.call('XTRIM', KEYS[4], 'MINID', '~', text(cell.now_ms - tonumber(ARGV[4])))
return {'OK', cell.epoch, cell.now_ms}
