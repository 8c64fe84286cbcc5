#!lua flags=allow-oom
-- schema: register a release in a cell, beside older releases that it is compatible with; or upgrade the cell, which
-- refuses older releases from then on.
-- KEYS meta changes hosts
-- ARGV schema oldest upgrade
--   schema   the schema of this release
--   oldest   the oldest schema that this release can work beside
--   upgrade  0 or 1
-- Reply OK | ALREADY_DONE (nothing to change) | OLDER (releases that this one cannot work beside may be running:
--   upgrade); epoch, now_ms, schema of the cell before
-- include: fence
local cell, meta = fence(), redis.call('HMGET', KEY.meta, 'schema', 'oldest')
local schema, oldest = tonumber(meta[1] or '1'), tonumber(meta[2] or '0')
local mine, beside, upgrade = tonumber(ARG.schema), tonumber(ARG.oldest), ARG.upgrade == '1'
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms, text(schema)}
end
if schema < beside and oldest < beside and not upgrade then
  return answer('OLDER')
end
local rises = upgrade and oldest < beside
if schema >= mine and not rises then
  return answer('ALREADY_DONE')
end
redis.call('HSET', KEY.meta, 'schema', text(math.max(schema, mine)))
if rises then
  redis.call('HSET', KEY.meta, 'oldest', text(beside))
end
return answer('OK')
