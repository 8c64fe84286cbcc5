-- change_host(): new values of some of a host's fields because of a claim, told in the feed. `more` entries follow.
-- include: fence
-- include: publish
-- include: whole
local function change_host(cell, key, name, op, more, id, fields)
  local version = whole(redis.call('HGET', key, 'version'), cell.seq, cell.seq) + 1
  publish(cell, 'host', name, version, op, more, {'claim', id, unpack(fields)})
  redis.call('HSET', key, 'version', text(version), unpack(fields))
end
