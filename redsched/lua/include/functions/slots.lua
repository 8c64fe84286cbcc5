-- read_host(): return the fields of a host, the names of its slots in order, and the number of fields; in one pass,
-- because a call may read 500 hosts. state_of(): return why a host gets no claims, as claim.lua answers, or OPEN.
-- slot_of(): return a slot of a host as claim.lua reads it for a request without a reservation; `free` is never below
-- 0. largest_fit(): return the most that one claim can take of so much free there. class_of(): return the class of a
-- slot, which may be in a pool.
-- include: closed_because
-- include: to_int
local CAPACITY = 'capacity.'

local function read_host(key)
  local flat = redis.call('HGETALL', key)
  local hash, names = {}, {}
  for at = 1, #flat, 2 do
    local field = flat[at]
    hash[field] = flat[at + 1]
    if string.find(field, CAPACITY, 1, true) == 1 then
      names[#names + 1] = string.sub(field, #CAPACITY + 1)
    end
  end
  table.sort(names)
  return hash, names, #flat / 2
end

local function state_of(cell, hash)
  local cause = closed_because(cell, to_int(hash.version), hash.epoch, hash.status, hash.alive_until_ms)
  return cause == '' and 'OPEN' or cause
end

local function slot_of(hash, slot)
  local capacity = to_int(hash['capacity.' .. slot], 0, 0)
  local claimed, external = to_int(hash['claimed.' .. slot], 0, MOST), to_int(hash['external.' .. slot], 0, MOST)
  local kept = hash.reservation and to_int(hash['kept.' .. slot], 0, MOST) or 0
  return {
    capacity = capacity, claimed = claimed, external = external, kept = kept,
    free = math.max(0, capacity - claimed - external - kept),
  }
end

local function largest_fit(hash, slot, free)
  local step = math.max(1, to_int(hash['step.' .. slot], 1, MOST))
  local most = math.min(free, to_int(hash['max.' .. slot], MOST, 0))
  most = most - most % step
  return most >= to_int(hash['min.' .. slot], 1, MOST) and most or 0
end

local function class_of(slot)
  return string.match(slot, '([^/]+)$')
end
