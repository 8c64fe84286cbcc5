#!lua flags=allow-oom
-- schema: a release joins a cell, which it may do beside older ones that it can work beside; or an operator upgrades
-- the cell, and those are refused from then on.
-- KEYS  1 meta, 2 changes, 3 hosts
-- ARGV  1 schema of this release, 2 the oldest schema that it can work beside, 3 upgrade (0 or 1)
-- Reply OK | SAME (nothing to change) | OLDER (releases may be at work that this one cannot work beside: upgrade);
--   epoch, now_ms, schema of the cell before
-- include: fence
local cell, meta = fence(), redis.call('HMGET', KEYS[1], 'schema', 'oldest')
local schema, oldest = tonumber(meta[1] or '1'), tonumber(meta[2] or '0')
local mine, beside, upgrade = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms, text(schema)}
end
if schema < beside and oldest < beside and not upgrade then
  return answer('OLDER')
end
local rises = upgrade and oldest < beside
if schema >= mine and not rises then
  return answer('SAME')
end
redis.call('HSET', KEYS[1], 'schema', text(math.max(schema, mine)))
if rises then
  redis.call('HSET', KEYS[1], 'oldest', text(beside))
end
return answer('OK')
