#!lua
-- membership: add hosts to an aggregate, and remove others from it. Hosts that are not named stay as they are, so that
-- a large aggregate can be declared in several calls; only the calls of its last declaration take effect. The last call
-- removes `writing:` from the digest, which changes the tag: what is based on a part of the hosts cannot replace all.
-- KEYS meta changes hosts object ...
--   object  the aggregate; then the hash of each host in ARGV
-- ARGV aggregate hosts_digest is_last ...
--   hosts_digest  of the declaration that this call belongs to
--   is_last       1 with the last hosts of the declaration, else 0
--   then for each host its name, and 1 (in the aggregate) or 0 (not in it)
-- Reply OK | ALREADY_DONE (nothing changed) | STALE (the aggregate was declared again, or deleted); epoch, now_ms, then
--   the unknown hosts among those to be added
-- include: fence
-- include: finish_declared
-- include: publish
local cell = fence()
local field, changed, unknown = 'aggregate.' .. ARG.aggregate, {}, {}
local digest = redis.call('HGET', KEY.object, 'hosts_digest')
local is_writing = digest == 'writing:' .. ARG.hosts_digest
if digest ~= ARG.hosts_digest and not is_writing then
  return {'STALE', cell.epoch, cell.now_ms}
end
for i = 4, #ARGV, 2 do
  local host = {name = ARGV[i], key = KEYS[(i + 6) / 2], joins = ARGV[i + 1] == '1'}
  local old = redis.call('HMGET', host.key, 'version', field)
  if old[1] and host.joins ~= (old[2] == '1') then
    host.version = tonumber(old[1]) + 1
    changed[#changed + 1] = host
  elseif not old[1] and host.joins then
    unknown[#unknown + 1] = host.name
  end
end
local completes = is_writing and ARG.is_last == '1'
local entries = #changed + (completes and 1 or 0)
for number, host in ipairs(changed) do
  publish(cell, 'host', host.name, host.version, 'membership', entries - number, {field, host.joins and '1' or ''})
end
if completes then
  local version = text(redis.call('HGET', KEY.object, 'version') + 1)
  publish(cell, 'aggregate', ARG.aggregate, version, 'membership', 0, {'hosts_digest', ARG.hosts_digest})
  redis.call('HSET', KEY.object, 'version', version, 'hosts_digest', ARG.hosts_digest)
end
for _, host in ipairs(changed) do
  redis.call('HSET', host.key, 'version', text(host.version))
  if host.joins then
    redis.call('HSET', host.key, field, '1')
  else
    redis.call('HDEL', host.key, field)
  end
end
if entries > 0 then
  finish_declared(cell)
end
return {entries > 0 and 'OK' or 'ALREADY_DONE', cell.epoch, cell.now_ms, unpack(unknown)}
