#!lua flags=allow-oom
-- raise: an agent has met an epoch that it had left, or a seq that went back: the store is not what it was. A higher
-- epoch is always safe; it only costs every host an attestation.
-- KEYS  1 meta, 2 changes, 3 hosts
-- ARGV  1 epoch that the present one must be above
-- Reply OK (a new epoch) | SAME (the present one is above); epoch, now_ms
-- include: fence
local cell = fence()
if tonumber(string.match(cell.epoch, '^%d+')) > tonumber(string.match(ARGV[1], '^%d+')) then
  return {'SAME', cell.epoch, cell.now_ms}
end
cell.epoch = ARGV[1]
mint(cell, id_after(redis.call('INFO', 'replication'), 'master_replid:'), false)
return {'OK', cell.epoch, cell.now_ms}
