-- log_event(): write a repair that is no change in the feed to the event log at once. `fields` is a flat list.
-- include: fence
local function log_event(cell, events_key, reason, fields)
  redis.call('XADD', events_key, '*', 'at_ms', text(cell.now_ms), 'seq', text(cell.seq), 'kind', 'repaired',
    'reason', reason, unpack(fields))
end
