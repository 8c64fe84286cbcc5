#!lua flags=allow-oom
-- raise_epoch: start a new epoch, because an agent has seen the store return to an epoch that it had left, or a seq go
-- back: data was lost. A higher epoch is always safe; it only costs every host an attestation.
-- KEYS meta changes hosts
-- ARGV above
--   above  the epoch that the present one must be above
-- Reply OK (a new epoch) | ALREADY_DONE (the present one is above already); epoch, now_ms
-- include: fence
-- include: info
-- include: mint
local cell = fence()
if tonumber(string.match(cell.epoch, '^%d+')) > tonumber(string.match(ARG.above, '^%d+')) then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
end
cell.epoch = ARG.above
mint(cell, id_after(redis.call('INFO', 'replication'), 'master_replid:'), false)
return {'OK', cell.epoch, cell.now_ms}
