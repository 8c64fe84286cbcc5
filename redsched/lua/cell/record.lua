#!lua
-- record: append events to the cell's event log. They were made from the entries of the feed that follow the last
-- recorded one. If another recorder was faster, or this call is a copy, nothing is appended, so no event is recorded
-- twice. Nothing is appended in another epoch than that in which the entries were read, because it may have lost them.
-- KEYS meta changes hosts events recorder
-- ARGV former_entry entry seq epoch keep_ms most count ...
--   former_entry  the entry of the feed that was recorded last; '' for none
--   entry, seq    the last entry that these events were made from
--   most          the length to which the log is trimmed
--   count         the number of events; then each as number of values, field, value ...
-- Reply OK | RETRY (another entry was recorded last, or another epoch); epoch, now_ms
-- include: fence
local cell = fence()
if cell.epoch ~= ARG.epoch or (redis.call('HGET', KEY.recorder, 'entry') or '') ~= ARG.former_entry then
  return {'RETRY', cell.epoch, cell.now_ms}
end
local at = 7
for _ = 1, tonumber(ARG.count) do
  local values = tonumber(ARGV[at + 1])
  redis.call('XADD', KEY.events, '*', unpack(ARGV, at + 2, at + 1 + values))
  at = at + 1 + values
end
redis.call('HSET', KEY.recorder, 'entry', ARG.entry, 'seq', ARG.seq)
redis.call('XTRIM', KEY.events, 'MAXLEN', '~', ARG.most)
redis.call('XTRIM', KEY.events, 'MINID', '~', text(cell.now_ms - tonumber(ARG.keep_ms)))
return {'OK', cell.epoch, cell.now_ms}
