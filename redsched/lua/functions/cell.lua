-- rs_cell: whether the cell is settled, which epoch it has, and whether anything writes to it.
-- include: info
-- include: people
-- include: register
local function say_clock(cell, say, meta)
  say('the last write was %s', moment(cell, meta[2]))
  local passed_ms = cell.now_ms - (tonumber(meta[2]) or 0)
  if passed_ms > (tonumber(meta[3]) or 15) * 1000 then
    say('nothing writes: look for schedulers and agents in CLIENT LIST')
  end
  local replication = redis.call('INFO', 'replication')
  if string.find(replication, 'role:master', 1, true) and id_after(replication, 'master_replid:') ~= meta[4] then
    say('the replication id is new: the next write checks whether data was lost')
  end
end

register('rs_cell', '', 0, 'Is the cell settled, and what waits in it?', function(cell, _, say)
  local meta = redis.call('HMGET', cell.prefix .. 'meta', 'seq', 'now_ms', 'jump_s', 'replid', 'unattested', 'schema',
    'settle_at_ms', 'missing')
  say('cell %s: %s, epoch %s', cell.name, cell.settled and 'settled' or 'SETTLING', cell.epoch)
  say('the epoch started %s, seq %s, schema %s', moment(cell, string.match(cell.epoch, '^%d+')), meta[1] or '0',
    meta[6] or '?')
  if not cell.settled then
    local missing = meta[5] ~= '-1' and meta[5] or meta[8] or '?'
    say('%s hosts have not attested; it settles at the latest %s', missing, moment(cell, meta[7]))
  end
  say_clock(cell, say, meta)
  local late = redis.call('ZCOUNT', cell.prefix .. 'hosts', '-inf', cell.now_ms)
  say('hosts: %d, %d of them without a lease (rs_stale)', redis.call('ZCARD', cell.prefix .. 'hosts'), late)
  say('claims with a lease: %d, %d of them overdue (rs_leases)', redis.call('ZCARD', cell.prefix .. 'deadlines'),
    redis.call('ZCOUNT', cell.prefix .. 'deadlines', '-inf', cell.now_ms))
  say('claims to reconcile: %d, %d of them due', redis.call('ZCARD', cell.prefix .. 'reconcile'),
    redis.call('ZCOUNT', cell.prefix .. 'reconcile', '-inf', cell.now_ms))
  say('draining hosts: %d, reserved hosts: %d, shelved claims: %d', redis.call('SCARD', cell.prefix .. 'draining'),
    redis.call('ZCARD', cell.prefix .. 'reservations'), redis.call('SCARD', cell.prefix .. 'shelved'))
end)
