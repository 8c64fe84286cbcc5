-- count_attested(): one host fewer to wait for; the last one settles the cell.
local function count_attested(cell)
  local waiting = tonumber(redis.call('HGET', KEYS[1], 'unattested') or '0')
  if waiting > 0 then
    redis.call('HSET', KEYS[1], 'unattested', text(waiting - 1))
    if waiting == 1 and not cell.settled then
      redis.call('HSET', KEYS[1], 'settled', '1')
    end
  end
end
