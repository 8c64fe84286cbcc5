-- remember_removed(): note that a host was removed by force, and its claims with it. If the host returns within
-- REMOVED_MS, it drops what was placed on it up to now: report.lua stores this as its lost_token. Call it after all
-- entries of the feed.
-- include: fence
local REMOVED_MS = 30 * 24 * 3600 * 1000

local function remember_removed(cell, key)
  redis.call('SET', key, cell.epoch .. '.' .. text(cell.seq), 'PX', text(REMOVED_MS))
end
