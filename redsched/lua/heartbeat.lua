#!lua flags=allow-oom
-- heartbeat: the host lives for another lease. Changes nothing else, and reaches the feed only when it had been down.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host, 5 deadlines
-- ARGV  1 host, 2 lease_ms, 3 journal, 4 nonce (both '' without an agent)
-- Reply OK | ATTEST (a new epoch: attest) | UNKNOWN (report first) | OTHER (another agent speaks); epoch, now_ms
-- include: fence
-- include: publish
local cell = fence(KEYS[5])
local host = redis.call('HMGET', KEYS[4], 'version', 'epoch', 'alive', 'agent.journal', 'agent.nonce')
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not host[1] then
  return answer('UNKNOWN')
end
if (host[4] or '') ~= ARGV[3] or (host[5] or '') ~= ARGV[4] then
  return answer('OTHER')
end
if host[2] ~= cell.epoch then
  return answer('ATTEST')
end
local until_ms = text(cell.now_ms + tonumber(ARGV[2]))
if host[3] ~= '1' then
  local version = tonumber(host[1]) + 1
  publish(cell, 'host', ARGV[1], version, 'up', 0, {'alive', '1'})
  redis.call('HSET', KEYS[4], 'alive', '1', 'version', text(version))
  finish(cell)
end
redis.call('HSET', KEYS[4], 'alive_until_ms', until_ms)
redis.call('ZADD', KEYS[3], until_ms, ARGV[1])
return answer('OK')
