#!lua
-- init: declare a cell new. It has no hosts that could still attest, so it is settled.
-- KEYS meta changes hosts
-- Reply OK, or ALREADY_DONE if the cell is settled or has hosts (nothing changes); epoch, now_ms
-- include: fence
local cell = fence()
if cell.settled or redis.call('ZCARD', KEY.hosts) > 0 then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
end
redis.call('HSET', KEY.meta, 'settled', '1', 'unattested', '0')
return {'OK', cell.epoch, cell.now_ms}
