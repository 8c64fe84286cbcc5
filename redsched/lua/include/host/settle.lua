-- count_heard(): one host fewer to wait for, if this one was; the last one settles the cell.
--
-- Waited for are the hosts that were known when the epoch was minted: those that first reported in another one, and
-- have neither attested to this one nor been written off in it. `host` has the fields since, epoch and written_off.
-- include: fence
local function count_heard(cell, host)
  if host.since == cell.epoch or host.epoch == cell.epoch or host.written_off == cell.epoch then
    return
  end
  local waiting = tonumber(redis.call('HGET', KEYS[1], 'unattested') or '0')
  if waiting > 0 then
    redis.call('HSET', KEYS[1], 'unattested', text(waiting - 1))
    if waiting == 1 and not cell.settled then
      redis.call('HSET', KEYS[1], 'settled', '1')
    end
  end
end
