#!lua
-- declare: an operator's word on an aggregate, a server group, a shared pool or a quota replaces the one before. What
-- claims have counted in it is not touched: after a loss of data it may have come back before the declaration did.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 the thing, 5 the set of the names of its kind
-- ARGV  1 kind (aggregate, server-group, pool or quota), 2 name, then field, value ...
-- Reply OK | SAME (it stands so) | HELD (a server group with members: how they are counted stays); epoch, now_ms
--   HELD where the group had been taken back by force: then the topologies by which not all members are counted
-- include: compare
-- include: definition
-- include: fence
-- include: finish_declared
-- include: in_chunks
-- include: mark_over
-- include: publish
-- include: read_hash
-- include: uncounted
-- include: whole
local cell = fence()
local old, known = read_hash(KEYS[4])
local changed = {}
local set, gone = compare(old, 3, #ARGV, is_definition, changed)
if known and #changed == 0 then
  return {'SAME', cell.epoch, cell.now_ms}
end
local members = ARGV[1] == 'server-group' and whole(old.members, 0, MOST) or 0
if members > 0 and old.policy then
  for i = 1, #changed, 2 do
    if changed[i] ~= 'max_per_host' then
      return {'HELD', cell.epoch, cell.now_ms}
    end
  end
elseif members > 0 then
  local missing = uncounted(old, members)
  if #missing > 0 then
    return {'HELD', cell.epoch, cell.now_ms, unpack(missing)}
  end
end
-- A new thing's version starts at the present seq, so that a name which comes back is newer than what it was before.
local version = text(whole(old.version, cell.seq, cell.seq) + 1)
publish(cell, ARGV[1], ARGV[2], version, 'declared', 0, changed)
redis.call('HSET', KEYS[4], 'version', version)
in_chunks('HSET', KEYS[4], set)
in_chunks('HDEL', KEYS[4], gone)
if ARGV[1] == 'quota' then
  redis.call('HDEL', KEYS[4], 'share_epoch') -- the shares were those of other limits
end
mark_over(KEYS[4])
redis.call('SADD', KEYS[5], ARGV[2])
local done = ARGV[1] == 'server-group' and finish or finish_declared -- claim.lua reads all of a group itself
done(cell)
return {'OK', cell.epoch, cell.now_ms}
