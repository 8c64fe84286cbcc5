-- log_event(): write a repair that changes nothing in the feed directly to the event log. `fields` is a flat list.
-- include: fence
-- include: origin
local function log_event(cell, events_key, reason, fields)
  redis.call('XADD', events_key, '*', 'at_ms', text(cell.now_ms), 'seq', text(cell.seq), 'kind', 'repaired',
    'reason', reason, unpack(with_origin(cell, fields)))
end
