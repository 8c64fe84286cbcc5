#!lua flags=allow-oom
-- lost: the operator writes a host off. It is disabled and down, its claims can be ended, and nobody waits for it to
-- attest; should it come back, it has to attest first, and what was ended meanwhile stays ended: `lost_token` is newer
-- than any placing on it so far. With `evacuate` schedulers place its claims elsewhere.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host, 5 leaving
-- ARGV  1 host, 2 evacuate (0 or 1)
-- Reply OK | SAME (written off in this epoch, and has not attested since) | UNKNOWN; epoch, now_ms
-- include: fence
-- include: publish
-- include: read_hash
-- include: settle
local function write_off(cell, host)
  local version = text(tonumber(host.version) + 1)
  publish(cell, 'host', ARGV[1], version, 'lost', 0, {'status', 'disabled', 'alive', '0', 'epoch', 'lost'})
  redis.call('HSET', KEYS[4], 'version', version, 'status', 'disabled', 'alive', '0', 'alive_until_ms', '0',
    'epoch', 'lost', 'written_off', cell.epoch, 'lost_token', cell.epoch .. '.' .. text(cell.seq))
  redis.call('ZADD', KEYS[3], 0, ARGV[1])
  count_heard(cell, host)
  finish(cell)
end

local cell = fence()
local host, known = read_hash(KEYS[4])
local evacuates = known and ARGV[2] == '1' and host.leaving ~= 'evacuate'
local lost = host.epoch == 'lost' and host.written_off == cell.epoch
if not known or (lost and not evacuates) then
  return {known and 'SAME' or 'UNKNOWN', cell.epoch, cell.now_ms}
end
if not lost then
  write_off(cell, host)
end
if evacuates then
  redis.call('HSET', KEYS[4], 'leaving', 'evacuate')
  redis.call('SADD', KEYS[5], ARGV[1])
end
return {'OK', cell.epoch, cell.now_ms}
