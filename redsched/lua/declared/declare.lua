#!lua
-- declare: replace the definition of an aggregate, a server group, a shared pool or a quota. The counts of claims in it
-- stay as they are: after a loss of data they may have been restored before the definition was.
-- KEYS meta changes hosts object names
--   names  the set of all names of that kind
-- ARGV kind name if_match ...
--   kind      aggregate, server-group, pool or quota
--   if_match  if_match.lua
--   then field, value ... of the whole definition
-- Reply OK | ALREADY_DONE (its definition is the same) | IN_USE (the server group has members, and the definition would
--   change how they are counted) | CHANGED (if_match names another tag); epoch, now_ms; after IN_USE for a group that
--   was undeclared by force, the topologies by which not all of its members are counted; after CHANGED the tag, if the
--   object is declared
-- include: breach
-- include: compare
-- include: definition
-- include: definition_tag
-- include: fence
-- include: finish_declared
-- include: if_match
-- include: in_chunks
-- include: mark_over
-- include: publish
-- include: read_hash
-- include: uncounted
-- include: to_int
local cell = fence()
local old, known = read_hash(KEY.object)
local changed = {}
for i = 4, #ARGV, 2 do
  if ARGV[i] == 'hosts_digest' and ARGV[i + 1] ~= old.hosts_digest then
    rawset(ARGV, i + 1, 'writing:' .. ARGV[i + 1]) -- until membership.lua has written the hosts
  end
end
local set, gone = compare(old, 4, #ARGV, is_definition, changed)
if known and #changed == 0 then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
end
local members = ARG.kind == 'server-group' and to_int(old.members, 0, MOST) or 0
if members > 0 and old.policy then
  for i = 1, #changed, 2 do
    if changed[i] ~= 'max_per_host' then
      return {'IN_USE', cell.epoch, cell.now_ms}
    end
  end
elseif members > 0 then
  local missing = uncounted(old, members, 4)
  if #missing > 0 then
    return {'IN_USE', cell.epoch, cell.now_ms, unpack(missing)}
  end
end
if not if_match(ARG.if_match, definition_tag(old)) then
  return {'CHANGED', cell.epoch, cell.now_ms, definition_tag(old)}
end
-- A new object's version starts at the current seq, so that an object with a reused name is newer than the former one.
local version = text(to_int(old.version, cell.seq, cell.seq) + 1)
publish(cell, ARG.kind, ARG.name, version, 'declared', 0, changed)
redis.call('HSET', KEY.object, 'version', version)
in_chunks('HSET', KEY.object, set)
in_chunks('HDEL', KEY.object, gone)
if ARG.kind == 'quota' and redis.call('HGET', KEY.object, 'cells') then
  -- The shares were of the former limits, and a division begun earlier must not close any further cell.
  redis.call('HSET', KEY.object, 'division', version)
  redis.call('HDEL', KEY.object, 'share_epoch', 'closed_at_ms')
end
mark_over(cell, ARG.kind, ARG.name, KEY.object)
if ARG.kind == 'server-group' then
  mark_breaches(cell, {{kind = ARG.kind, own_name = ARG.name, key = KEY.object, breach = breach_of(old)}})
end
redis.call('SADD', KEY.names, ARG.name)
local done = ARG.kind == 'server-group' and finish or finish_declared -- claim.lua reads the group itself
done(cell)
return {'OK', cell.epoch, cell.now_ms}
