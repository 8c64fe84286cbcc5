#!lua flags=allow-oom
-- told: put into the cell's event log that something was mended which lies in no cell. Told again it is there once.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 events
-- ARGV  1 repair: its name, 2 reason, then field, value ...
-- Reply OK | SAME (a copy); epoch, now_ms
-- include: fence
-- include: tell
local LATEST = 200 -- a copy comes soon after

local cell = fence()
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', LATEST)) do
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'repair' and entry[2][i + 1] == ARGV[1] then
      return {'SAME', cell.epoch, cell.now_ms}
    end
  end
end
tell(cell, KEYS[4], ARGV[2], {'repair', ARGV[1], unpack(ARGV, 3)})
return {'OK', cell.epoch, cell.now_ms}
