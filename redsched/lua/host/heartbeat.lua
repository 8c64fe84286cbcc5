#!lua flags=allow-oom
-- heartbeat: renew a host's lease. Nothing else changes, and the feed reports it only if the host was down.
-- KEYS meta changes hosts host deadlines
-- ARGV host lease_ms journal nonce
--   journal, nonce  '' without an agent
-- Reply OK | NOT_ATTESTED (a new epoch has begun: attest) | UNKNOWN (report first) | NOT_OWNER (another agent owns the
--   host); epoch, now_ms
-- A process with the same journal but another nonce gets UNKNOWN: either it has replaced the process in the host's
-- record and a failover has lost its report, or there are two copies of the journal. The number of its next report
-- tells which.
-- include: fence
-- include: renew_lease
local cell = fence(KEY.deadlines)
local host = redis.call('HMGET', KEY.host, 'version', 'epoch', 'alive', 'agent.journal', 'agent.nonce')
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not host[1] then
  return answer('UNKNOWN')
end
if (host[4] or '') ~= ARG.journal then
  return answer('NOT_OWNER')
elseif (host[5] or '') ~= ARG.nonce then
  return answer('UNKNOWN')
end
if host[2] ~= cell.epoch then
  return answer('NOT_ATTESTED')
end
renew_lease(cell, ARG.host, tonumber(host[1]), host[3], tonumber(ARG.lease_ms))
return answer('OK')
