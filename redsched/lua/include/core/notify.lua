-- notify(): add an entry to the inbox of a host, for its agent. `number` is dense per host, so that a lost entry shows.
-- Returns the entry's id.
-- include: fence
local function notify(cell, inbox_key, number, op, id, token)
  return redis.call('XADD', inbox_key, '*', 'op', op, 'number', text(number), 'epoch', cell.epoch, 'claim', id,
    'token', token)
end
