#!lua flags=allow-oom
-- undeclare: an aggregate, a server group, a shared pool or a quota is no longer declared. Refused while claims count
-- in it, unless forced: then what they count stays, unseen, for the claims are still there, and it may be declared
-- again.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 the thing, 5 the set of the names of its kind
-- ARGV  1 kind (aggregate, server-group, pool or quota), 2 name, 3 force (0 or 1)
-- Reply OK | UNKNOWN (it is not declared) | HELD (claims count in it); epoch, now_ms
-- include: definition
-- include: fence
-- include: finish_declared
-- include: in_chunks
-- include: publish
-- include: quota_division
-- include: read_hash
-- include: whole
local cell = fence()
local thing, known = read_hash(KEYS[4])
local defined, held = {}, false
for field, value in pairs(thing) do
  if is_definition(field) or is_of_division(field) then
    defined[#defined + 1] = field
  elseif field == 'members' or string.find(field, '^claimed%.') or string.find(field, '^used%.') then
    held = held or whole(value, 0, MOST) > 0
  end
end
if not known or (ARGV[1] ~= 'aggregate' and #defined == 0) then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
elseif held and ARGV[3] ~= '1' then
  return {'HELD', cell.epoch, cell.now_ms}
end
local version = text(whole(thing.version, cell.seq, cell.seq) + 1)
publish(cell, ARGV[1], ARGV[2], version, 'removed', 0, {})
if held then
  redis.call('HSET', KEYS[4], 'version', version)
  in_chunks('HDEL', KEYS[4], defined)
else
  redis.call('DEL', KEYS[4])
end
redis.call('SREM', KEYS[5], ARGV[2])
local done = ARGV[1] == 'server-group' and finish or finish_declared -- claim.lua reads all of a group itself
done(cell)
return {'OK', cell.epoch, cell.now_ms}
