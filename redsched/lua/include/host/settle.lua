-- count_attested(): make the cell wait for one host fewer, if it waited for this one; the last one settles the cell.
--
-- The cell waits for the hosts that were known when the epoch was minted: they first reported in another epoch, and
-- have neither attested to this one nor been written off in it. `host` has the fields since, epoch and written_off.
-- include: fence
local function count_attested(cell, host)
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
