-- renew_lease(): renew a host's lease, publish that it is up if it was down, and return its version after that.
-- Only then does anything but the lease change, and the feed report it.
-- include: publish
local function renew_lease(cell, name, version, alive, lease_ms)
  if alive ~= '1' then
    version = version + 1
    publish(cell, 'host', name, version, 'up', 0, {'alive', '1'})
    redis.call('HSET', KEY.host, 'alive', '1', 'version', text(version))
    finish(cell)
  end
  local until_ms = text(cell.now_ms + lease_ms)
  redis.call('HSET', KEY.host, 'alive_until_ms', until_ms)
  redis.call('ZADD', KEY.hosts, until_ms, name)
  return version
end
