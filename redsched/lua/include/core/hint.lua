-- hint(): notify the host's agent that there is something to do. `number` is dense per host, so that a lost hint shows.
-- Returns the entry's id.
-- include: fence
local function hint(cell, inbox_key, number, op, id, token)
  return redis.call('XADD', inbox_key, '*', 'op', op, 'number', text(number), 'epoch', cell.epoch, 'claim', id,
    'token', token)
end
