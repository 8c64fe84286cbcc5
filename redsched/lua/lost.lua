#!lua flags=allow-oom
-- lost: the operator writes a host off. It is disabled and down, its claims can be ended, and nobody waits for it to
-- attest; should it come back, it has to attest first, and what was ended meanwhile stays ended.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host
-- ARGV  1 host
-- Reply OK | SAME (written off in this epoch, and has not attested since) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
-- include: read_hash
-- include: settle
local cell = fence()
local host, known = read_hash(KEYS[4])
if not known or (host.epoch == 'lost' and host.written_off == cell.epoch) then
  return {known and 'SAME' or 'UNKNOWN', cell.epoch, cell.now_ms}
end
local version = text(tonumber(host.version) + 1)
publish(cell, 'host', ARGV[1], version, 'lost', 0, {'status', 'disabled', 'alive', '0', 'epoch', 'lost'})
redis.call('HSET', KEYS[4], 'version', version, 'status', 'disabled', 'alive', '0', 'alive_until_ms', '0',
  'epoch', 'lost', 'written_off', cell.epoch)
redis.call('ZADD', KEYS[3], 0, ARGV[1])
count_heard(cell, host)
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
