-- notify(): add an entry to the inbox of a host, for its agent. `number` is dense per host, so that a lost entry shows.
-- Returns the entry's id. `origin`: see origin.lua.
-- include: fence
-- include: origin
local function notify(cell, inbox_key, number, op, id, token, origin)
  return redis.call('XADD', inbox_key, '*', 'op', op, 'number', text(number), 'epoch', cell.epoch, 'claim', id,
    'token', token, unpack(with_origin(cell, {}, origin)))
end
