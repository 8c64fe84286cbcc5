#!lua flags=allow-oom
-- down: mark hosts whose lease has lapsed as down. A lease that lasts longer than the host's leases do is of a clock
-- that was ahead: it ends a whole lease from now. Any scheduler may call it, in bounded batches: the lease is checked
-- here, by the store's time.
-- KEYS meta changes hosts ...
--   then the hash of each host in ARGV
-- ARGV ...
--   the names of the hosts
-- Reply OK, epoch, now_ms, number of hosts marked
-- include: fence
-- include: publish
-- include: to_int
local SLACK_MS = 1000 -- a clock that goes back by less starts no epoch
local cell = fence()
local due, long = {}, {}
for i = 1, #ARGV do
  local host = redis.call('HMGET', KEYS[3 + i], 'version', 'alive', 'alive_until_ms', 'lease_ms')
  local until_ms, latest_ms = to_int(host[3], 0, 0), cell.now_ms + to_int(host[4], MOST, MOST)
  if host[1] and host[2] == '1' and until_ms <= cell.now_ms then
    due[#due + 1] = {name = ARGV[i], key = KEYS[3 + i], version = tonumber(host[1]) + 1}
  elseif host[1] and until_ms > latest_ms + SLACK_MS then
    long[#long + 1] = {name = ARGV[i], key = KEYS[3 + i], until_ms = text(latest_ms)}
  end
end
for i, host in ipairs(due) do
  publish(cell, 'host', host.name, host.version, 'down', #due - i, {'alive', '0'})
end
for _, host in ipairs(due) do
  redis.call('HSET', host.key, 'alive', '0', 'version', text(host.version))
end
for _, host in ipairs(long) do
  redis.call('HSET', host.key, 'alive_until_ms', host.until_ms)
  redis.call('ZADD', KEY.hosts, host.until_ms, host.name)
end
finish(cell)
return {'OK', cell.epoch, cell.now_ms, #due}
