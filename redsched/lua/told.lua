#!lua flags=allow-oom
-- told: note in the cell's event log the repair of something that lies in no cell. A copy of the call adds nothing.
-- KEYS meta changes hosts events
-- ARGV repair reason ...
--   repair  names this very repair
--   then field, value ...
-- Reply OK | SAME (a copy); epoch, now_ms
-- include: fence
-- include: tell
local LATEST = 200 -- a copy comes soon after

local cell = fence()
for _, entry in ipairs(redis.call('XREVRANGE', KEY.events, '+', '-', 'COUNT', LATEST)) do
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'repair' and entry[2][i + 1] == ARG.repair then
      return {'SAME', cell.epoch, cell.now_ms}
    end
  end
end
tell(cell, KEY.events, ARG.reason, {'repair', ARG.repair, unpack(ARGV, 3)})
return {'OK', cell.epoch, cell.now_ms}
