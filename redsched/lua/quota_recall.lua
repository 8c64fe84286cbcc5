#!lua
-- quota_recall: before a project's claims in this cell are counted: what was decided before this is answered BEHIND,
-- for it may have been reserved in a ledger that has forgotten it.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 the quota
-- ARGV  1 project
-- Reply OK | UNKNOWN (it is not declared here) | SETTLING (hosts may still bring claims); epoch, now_ms
-- include: fence
-- include: finish_declared
-- include: publish
-- include: whole
local cell = fence()
local version = redis.call('HGET', KEYS[4], 'version')
if not cell.settled then
  return {'SETTLING', cell.epoch, cell.now_ms}
elseif not version then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
version = text(whole(version, cell.seq, cell.seq) + 1)
publish(cell, 'quota', ARGV[1], version, 'recall', 0, {})
redis.call('HSET', KEYS[4], 'version', version)
finish_declared(cell)
return {'OK', cell.epoch, cell.now_ms}
