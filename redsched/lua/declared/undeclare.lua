#!lua flags=allow-oom
-- undeclare: delete the definition of an aggregate, a server group, a shared pool or a quota. Refused while claims
-- count in it, unless forced: then the counts stay, hidden, and it may be declared again.
-- KEYS meta changes hosts object names
--   names  the set of all names of that kind
-- ARGV kind name force if_match
--   kind      aggregate, server-group, pool or quota
--   force     0 or 1
--   if_match  if_match.lua
-- Reply OK | UNKNOWN (it is not declared) | IN_USE (claims count in it) | CHANGED (if_match names another tag); epoch,
--   now_ms, then after CHANGED the tag
-- include: definition
-- include: definition_tag
-- include: fence
-- include: finish_declared
-- include: if_match
-- include: in_chunks
-- include: publish
-- include: quota_division
-- include: read_hash
-- include: to_int
local cell = fence()
local object, known = read_hash(KEY.object)
local defined, held = {}, false
for field, value in pairs(object) do
  if is_definition(field) or is_of_division(field) then
    defined[#defined + 1] = field
  elseif field == 'members' or string.find(field, '^claimed%.') or string.find(field, '^used%.') then
    held = held or to_int(value, 0, MOST) > 0
  end
end
if not known or (ARG.kind ~= 'aggregate' and #defined == 0) then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
elseif held and ARG.force ~= '1' then
  return {'IN_USE', cell.epoch, cell.now_ms}
elseif not if_match(ARG.if_match, definition_tag(object)) then
  return {'CHANGED', cell.epoch, cell.now_ms, definition_tag(object)}
end
local version = text(to_int(object.version, cell.seq, cell.seq) + 1)
publish(cell, ARG.kind, ARG.name, version, 'removed', 0, {})
if held then
  redis.call('HSET', KEY.object, 'version', version)
  in_chunks('HDEL', KEY.object, defined)
else
  redis.call('DEL', KEY.object)
end
redis.call('SREM', KEY.names, ARG.name)
local done = ARG.kind == 'server-group' and finish or finish_declared -- claim.lua reads the group itself
done(cell)
return {'OK', cell.epoch, cell.now_ms}
