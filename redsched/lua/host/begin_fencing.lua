#!lua flags=allow-oom
-- begin_fencing: record that a scheduler is about to call the fence command for a host that is down, if that may be
-- done now. Refused while the cell is not settled; while more than half of the cell's hosts are down, which is more
-- likely a partition than so many dead machines; and while as many other hosts as may be were fenced lately. A time of
-- being down that began in an earlier epoch counts from the start of this one. A host without claims, or one that an
-- operator has disabled or that was written off, is left alone.
-- KEYS meta changes hosts host fencing
-- ARGV host after_ms most percent within_ms
--   after_ms   how long the host must have been down
--   most       how many hosts may be fenced within `within_ms`, or, if that is more:
--   percent    so many of the cell's hosts
-- Reply OK | ALREADY_DONE (it is left alone) | UNKNOWN | ALIVE (it has not been down for so long) | LIMITED; epoch,
--   now_ms, then after OK the end of the host's lease (Unix, ms), after LIMITED `unsettled`, `most-down` or `limit`
-- include: fence
-- include: in_chunks
-- include: publish
-- include: read_hash
-- include: to_int
local KEPT_MS = 24 * 3600 * 1000
local cell = fence()
local within_ms = tonumber(ARG.within_ms)
local found = redis.call('HMGET', KEY.host, 'version', 'status', 'epoch', 'alive_until_ms', 'claims')
local version, status, epoch, lease_ms = found[1], found[2], found[3], to_int(found[4], 0, 0)

local function answer(outcome, ...)
  return {outcome, cell.epoch, cell.now_ms, ...}
end

-- Return how many hosts whose leases end between two times there are. ZCOUNT is left out for the sake of users of the
-- store whose permissions are of an earlier release.
local function leases(from_ms, to_ms)
  return #redis.call('ZRANGE', KEY.hosts, from_ms, to_ms, 'BYSCORE')
end

-- Return the hosts that count for the limits, those that are down, and those that may be fenced.
local function numbers()
  local known, down = redis.call('ZCARD', KEY.hosts) - leases(0, 0), leases(1, text(cell.now_ms))
  return known, down, math.max(tonumber(ARG.most), math.floor(known * ARG.percent / 100))
end

-- Return how many other hosts were fenced lately, when the first of them no longer counts, and the fields that are of
-- no interest any more: of hosts that were fenced long ago, and why no host could be fenced.
local function lately(noted)
  local others, first_ms, stale = 0, math.huge, {'held', 'held_ms', 'held_count', 'held_of', 'held_until_ms'}
  for field, value in pairs(noted) do
    local name, began_ms = string.match(field, '^began_ms%.(.+)$'), to_int(value, 0, 0)
    local is_other = name and name ~= ARG.host
    if is_other and began_ms + within_ms > cell.now_ms then
      others, first_ms = others + 1, math.min(first_ms, began_ms)
    elseif is_other and began_ms + within_ms + KEPT_MS < cell.now_ms then
      for _, kind in ipairs({'began_ms.', 'failed_ms.', 'failures.', 'problem.'}) do
        stale[#stale + 1] = kind .. name
      end
    end
  end
  return others, first_ms + within_ms, stale
end

local function hold(reason, count, of, until_ms)
  redis.call('HSET', KEY.fencing, 'held', reason, 'held_ms', text(cell.now_ms), 'held_count', text(count),
    'held_of', text(of), 'held_until_ms', text(until_ms))
  redis.call('PEXPIRE', KEY.fencing, text(within_ms + KEPT_MS))
  return answer('LIMITED', reason)
end

-- The number in the epoch is later if an earlier one was of a clock that was ahead.
local function epoch_began()
  return tonumber(redis.call('HGET', KEY.meta, 'began_ms') or string.match(cell.epoch, '^%d+'))
end

if not version then
  return answer('UNKNOWN')
elseif epoch == 'lost' or status == 'disabled' or lease_ms == 0 or to_int(found[5], 0, 0) == 0 then
  return answer('ALREADY_DONE')
elseif math.max(lease_ms, epoch_began()) + ARG.after_ms > cell.now_ms then
  return answer('ALIVE')
elseif not cell.settled then
  return hold('unsettled', 0, 0, 0)
end
local known, down, most = numbers()
if 2 * down > known then
  return hold('most-down', down, known, 0)
end
local noted = read_hash(KEY.fencing)
local others, next_ms, stale = lately(noted)
if others >= most then
  return hold('limit', others, most, next_ms)
end
-- What failed before the host was last heard of says nothing about this time.
local is_again = to_int(noted['began_ms.' .. ARG.host], 0, 0) > lease_ms
local failures = is_again and to_int(noted['failures.' .. ARG.host], 0, 0) or 0
publish(cell, 'host', ARG.host, version + 1, 'fencing', 0, {})
redis.call('HSET', KEY.host, 'version', text(version + 1))
redis.call('HSET', KEY.fencing, 'began_ms.' .. ARG.host, text(cell.now_ms), 'failures.' .. ARG.host, text(failures))
redis.call('PEXPIRE', KEY.fencing, text(within_ms + KEPT_MS))
finish(cell)
-- Last, because a script touches no key that it may have removed.
in_chunks('HDEL', KEY.fencing, stale)
return answer('OK', text(lease_ms))
