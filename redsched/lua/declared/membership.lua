#!lua
-- membership: add hosts to an aggregate, and remove others from it. Hosts that are not named stay as they are, so that
-- a large aggregate can be declared in several calls; only the calls of its last declaration take effect.
-- KEYS meta changes hosts object ...
--   object  the aggregate; then the hash of each host in ARGV
-- ARGV aggregate hosts_digest ...
--   hosts_digest  of the declaration that this call belongs to
--   then for each host its name, and 1 (in the aggregate) or 0 (not in it)
-- Reply OK | ALREADY_DONE (nothing changed) | STALE (the aggregate was declared again, or deleted); epoch, now_ms, then
--   the unknown hosts among those to be added
-- include: fence
-- include: finish_declared
-- include: publish
local cell = fence()
local field, changed, unknown = 'aggregate.' .. ARG.aggregate, {}, {}
if redis.call('HGET', KEY.object, 'hosts_digest') ~= ARG.hosts_digest then
  return {'STALE', cell.epoch, cell.now_ms}
end
for i = 3, #ARGV, 2 do
  local host = {name = ARGV[i], key = KEYS[(i + 7) / 2], joins = ARGV[i + 1] == '1'}
  local old = redis.call('HMGET', host.key, 'version', field)
  if old[1] and host.joins ~= (old[2] == '1') then
    host.version = tonumber(old[1]) + 1
    changed[#changed + 1] = host
  elseif not old[1] and host.joins then
    unknown[#unknown + 1] = host.name
  end
end
for number, host in ipairs(changed) do
  publish(cell, 'host', host.name, host.version, 'membership', #changed - number, {field, host.joins and '1' or ''})
end
for _, host in ipairs(changed) do
  redis.call('HSET', host.key, 'version', text(host.version))
  if host.joins then
    redis.call('HSET', host.key, field, '1')
  else
    redis.call('HDEL', host.key, field)
  end
end
if #changed > 0 then
  finish_declared(cell)
end
return {#changed > 0 and 'OK' or 'ALREADY_DONE', cell.epoch, cell.now_ms, unpack(unknown)}
