-- remember_removed(): a host is removed by force, and its claims with it. Should it come back, however late, it drops
-- what was placed on it up to now: report.lua makes this its lost_token. Called when all of it is in the feed.
-- include: fence
local REMOVED_MS = 30 * 24 * 3600 * 1000

local function remember_removed(cell, key)
  redis.call('SET', key, cell.epoch .. '.' .. text(cell.seq), 'PX', text(REMOVED_MS))
end
