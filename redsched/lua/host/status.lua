#!lua flags=allow-oom
-- status: set a host's status: enabled, disabled or draining. Its claims stay; with `move`, schedulers place them
-- elsewhere. An evacuation continues until the host is enabled.
-- KEYS meta changes hosts host draining expected
-- ARGV host status move deadline_ms after reason if_match ahead
--   move         0 or 1
--   deadline_ms  of a drain with moves: the time from now during which claims are moved; '' for no limit
--   after        stop or keep: what happens to claims that are left after the deadline; '' without one
--   reason       why, as text; '' for the present one. A host that is enabled has none.
--   if_match     if_match.lua
--   ahead        1: for a host that is not known, declare the status with which it will join. 0: enabling one whose
--                status was declared withdraws that
-- Reply OK | ALREADY_DONE (nothing changed) | UNKNOWN | CHANGED (if_match names another tag); epoch, now_ms, then after
--   CHANGED the tag
-- include: clock_shift
-- include: fence
-- include: if_match
-- include: operator_tag
-- include: publish
local cell = fence()
local found = redis.call('HMGET', KEY.host, 'version', 'status', 'draining', 'drain_deadline_ms', 'drain_then', 'epoch',
  'status_reason', 'written_off_by')
local host = {version = found[1], status = found[2], draining = found[3], drain_deadline_ms = found[4],
  drain_then = found[5], epoch = found[6], status_reason = found[7]}
-- Once the host is back, its status is the operator's again.
local decides = found[8] and (ARG.status == 'enabled' or host.epoch ~= 'lost')
if not host.version then
  local declared, outcome = redis.call('HGET', KEY.expected, ARG.host), 'UNKNOWN'
  local wanted = ARG.status .. (ARG.reason ~= '' and ' ' .. ARG.reason or '')
  if ARG.ahead == '1' then
    outcome = declared == wanted and 'ALREADY_DONE' or 'OK'
    redis.call('HSET', KEY.expected, ARG.host, wanted)
  elseif declared and ARG.status == 'enabled' then
    outcome = 'OK'
    redis.call('HDEL', KEY.expected, ARG.host)
  end
  return {outcome, cell.epoch, cell.now_ms}
end
local draining = ARG.move == '1' and 'move' or false
if host.draining == 'evacuate' and ARG.status ~= 'enabled' then
  draining = 'evacuate'
end
local reason = ARG.status ~= 'enabled' and (ARG.reason ~= '' and ARG.reason or host.status_reason)
local drain_deadline_ms = draining == 'move' and ARG.deadline_ms ~= '' and text(cell.now_ms + tonumber(ARG.deadline_ms))
if host.status == ARG.status and host.draining == draining and host.status_reason == reason
  and not host.drain_deadline_ms and not drain_deadline_ms and not decides then
  return {'ALREADY_DONE', cell.epoch, cell.now_ms}
elseif not if_match(ARG.if_match, operator_tag(host)) then
  return {'CHANGED', cell.epoch, cell.now_ms, operator_tag(host)}
end
if host.status ~= ARG.status then
  local version = tonumber(host.version) + 1
  local fields = {'status', ARG.status}
  if reason then
    fields[3], fields[4] = 'status_reason', reason
  end
  publish(cell, 'host', ARG.host, version, 'status', 0, fields)
  redis.call('HSET', KEY.host, 'status', ARG.status, 'version', text(version))
  finish(cell)
end
if draining then
  redis.call('HSET', KEY.host, 'draining', draining)
  redis.call('SADD', KEY.draining, ARG.host)
else
  redis.call('HDEL', KEY.host, 'draining')
  redis.call('SREM', KEY.draining, ARG.host)
end
if drain_deadline_ms then
  redis.call('HSET', KEY.host, 'drain_deadline_ms', drain_deadline_ms, 'drain_then', ARG.after)
  if clock_shift() ~= 0 then
    redis.call('HSET', KEY.host, 'clock_shift_ms', text(clock_shift()))
  else
    redis.call('HDEL', KEY.host, 'clock_shift_ms')
  end
else
  redis.call('HDEL', KEY.host, 'drain_deadline_ms', 'drain_then')
end
if decides then
  redis.call('HDEL', KEY.host, 'written_off_by')
end
if reason then
  redis.call('HSET', KEY.host, 'status_reason', reason)
else
  redis.call('HDEL', KEY.host, 'status_reason')
end
return {'OK', cell.epoch, cell.now_ms}
