#!lua
-- reserve: keep amounts of a host for a request that waits for room: other claims do not get them, even once they are
-- free. Or renew such a reservation, or end it.
-- KEYS meta changes hosts host reservations
-- ARGV host reservation lease_ms wait_ms most request project ...
--   reservation  the id of the request's reservation; '' to end any whose lease has expired
--   lease_ms     how long it lasts unless it is renewed; 0 to end it
--   wait_ms      how long from now the request will certainly wait: work that ends within this time may use the amounts
--   most         the number of hosts of the cell that may be reserved at a time
--   request, project   whose it is, for those who look at the host
--   then the slots, each with its amount
-- Reply OK | ALREADY_DONE (it has ended already) | IN_USE (the host is reserved for another request) | FULL (as many
--   hosts as may be are reserved) | UNKNOWN (no such host); epoch, now_ms
-- include: fence
-- include: publish
-- include: put_fields
-- include: read_hash
-- include: to_int
local cell = fence()
local host, known = read_hash(KEY.host)
local lease_ms, has_expired = tonumber(ARG.lease_ms), to_int(host.reservation_until_ms, 0, 0) <= cell.now_ms
local is_own = host.reservation == ARG.reservation

local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end

-- Return what to set and what to delete for these amounts, in place of those that are kept now.
local function changes(amounts)
  local set, removed = {}, {}
  for field in pairs(host) do
    local slot = string.match(field, '^kept%.(.+)$')
    if slot and not amounts[slot] then
      removed[#removed + 1] = field
    end
  end
  for slot, amount in pairs(amounts) do
    set[#set + 1], set[#set + 2] = 'kept.' .. slot, amount
  end
  return set, removed
end

local function write(set, removed)
  local fields, version = {}, text(tonumber(host.version) + 1)
  put_fields(fields, set, removed)
  publish(cell, 'host', ARG.host, version, 'reserved', 0, fields)
  redis.call('HSET', KEY.host, 'version', version, unpack(set))
  if #removed > 0 then
    redis.call('HDEL', KEY.host, unpack(removed))
  end
  finish(cell)
end

if not known or not host.version then
  redis.call('ZREM', KEY.reservations, ARG.host)
  return answer('UNKNOWN')
elseif lease_ms == 0 then
  if not host.reservation then
    redis.call('ZREM', KEY.reservations, ARG.host) -- the host was forgotten, and has reported again
    return answer('ALREADY_DONE')
  elseif not (is_own or ARG.reservation == '' and has_expired) then
    return answer('ALREADY_DONE')
  end
  local set, removed = changes({})
  for _, field in ipairs({'reservation', 'reservation_until_ms', 'reservation_from_ms', 'reservation_request',
      'reservation_project'}) do
    removed[#removed + 1] = field
  end
  write(set, removed)
  redis.call('ZREM', KEY.reservations, ARG.host)
  return answer('OK')
elseif host.reservation and not is_own and not has_expired then
  return answer('IN_USE')
elseif not host.reservation and redis.call('ZCARD', KEY.reservations) >= tonumber(ARG.most) then
  return answer('FULL')
end
local amounts = {}
for i = 8, #ARGV, 2 do
  amounts[ARGV[i]] = ARGV[i + 1]
end
local set, removed = changes(amounts)
local until_ms, from_ms = text(cell.now_ms + lease_ms), text(cell.now_ms + ARG.wait_ms)
for _, value in ipairs({'reservation', ARG.reservation, 'reservation_until_ms', until_ms, 'reservation_from_ms',
    from_ms, 'reservation_request', ARG.request, 'reservation_project', ARG.project}) do
  set[#set + 1] = value
end
write(set, removed)
redis.call('ZADD', KEY.reservations, until_ms, ARG.host)
return answer('OK')
