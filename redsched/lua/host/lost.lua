#!lua flags=allow-oom
-- lost: write a host off. The host becomes disabled and down, its claims can be ended, and the cell does not wait for
-- it to attest. If it returns, it must attest first, and what was ended meanwhile stays ended: `lost_token` is newer
-- than any placement on it so far. With `evacuate`, schedulers place its claims elsewhere. Refused while the host's
-- lease runs, unless forced: a host that is alive attests again, which undoes the write-off.
-- KEYS meta changes hosts host draining
-- ARGV host evacuate force if_match fenced_epoch fenced_lease_ms reason
--   evacuate, force  0 or 1
--   if_match         if_match.lua
--   fenced_epoch     a fence command has succeeded that was called in this epoch; '' if a person writes the host off
--   fenced_lease_ms  when the host's lease had ended by then (Unix, ms): it may not have been heard of since
--   reason           why, as text; '' for the present one
-- Reply OK | ALREADY_DONE (it was written off in this epoch and has not attested since) | UNKNOWN | ALIVE | CHANGED
--   (if_match names another tag) | WRONG_EPOCH; epoch, now_ms, then after ALIVE the rest of its lease in ms, after
--   CHANGED the tag
-- include: fence
-- include: if_match
-- include: operator_tag
-- include: publish
-- include: read_hash
-- include: settle
-- include: to_int
local is_fenced = ARG.fenced_epoch ~= ''
local reason = is_fenced and 'fenced: the command proved that its machine was off' or ARG.reason

local function write_off(cell, host)
  local version = text(tonumber(host.version) + 1)
  local changed = {'status', 'disabled', 'alive', '0', 'epoch', 'lost'}
  if reason ~= '' then
    changed[#changed + 1], changed[#changed + 2] = 'status_reason', reason
  end
  publish(cell, 'host', ARG.host, version, 'lost', 0, changed)
  redis.call('HSET', KEY.host, 'version', version, 'status', 'disabled', 'alive', '0', 'alive_until_ms', '0',
    'epoch', 'lost', 'written_off', cell.epoch, 'lost_token', cell.epoch .. '.' .. text(cell.seq))
  if host.epoch ~= 'lost' and (is_fenced or host.written_off_by or host.status ~= 'disabled') then
    redis.call('HSET', KEY.host, 'written_off_by', is_fenced and 'fence' or 'operator')
  end
  if host.epoch ~= 'lost' and host.written_off_by == 'fence' and reason == '' then
    redis.call('HDEL', KEY.host, 'status_reason') -- it was fenced another time
  end
  if host.epoch and host.epoch ~= 'lost' then
    redis.call('HSET', KEY.host, 'heard', host.epoch)
  end
  redis.call('ZADD', KEY.hosts, 0, ARG.host)
  count_attested(cell, host)
  finish(cell)
end

local cell = fence()
local host, known = read_hash(KEY.host)
local lost = host.epoch == 'lost' and host.written_off == cell.epoch
local evacuates = known and not (lost and is_fenced) and ARG.evacuate == '1' and host.draining ~= 'evacuate'
local explains = known and not is_fenced and reason ~= '' and reason ~= host.status_reason
if not known or (lost and not evacuates and not explains) then
  return {known and 'ALREADY_DONE' or 'UNKNOWN', cell.epoch, cell.now_ms}
end
local lease_ms = to_int(host.alive_until_ms, 0, 0) - cell.now_ms
if is_fenced and ARG.fenced_epoch ~= cell.epoch then
  return {'WRONG_EPOCH', cell.epoch, cell.now_ms}
elseif is_fenced and ARG.fenced_lease_ms ~= host.alive_until_ms then
  return {'ALIVE', cell.epoch, cell.now_ms, text(lease_ms)}
elseif not lost and lease_ms > 0 and ARG.force ~= '1' then
  return {'ALIVE', cell.epoch, cell.now_ms, text(lease_ms)}
elseif not if_match(ARG.if_match, operator_tag(host)) then
  return {'CHANGED', cell.epoch, cell.now_ms, operator_tag(host)}
end
if not lost then
  write_off(cell, host)
end
if reason ~= '' then
  redis.call('HSET', KEY.host, 'status_reason', reason)
end
if evacuates then
  redis.call('HSET', KEY.host, 'draining', 'evacuate')
  redis.call('HDEL', KEY.host, 'drain_deadline_ms', 'drain_then')
  redis.call('SADD', KEY.draining, ARG.host)
end
return {'OK', cell.epoch, cell.now_ms}
