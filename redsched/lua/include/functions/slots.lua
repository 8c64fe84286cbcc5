-- state_of(): return why a host gets no claims, as claim.lua answers, or OPEN. slots_of(): return the slots of a host
-- by name and the names, as claim.lua reads them for a request without a reservation; `free` is never below 0.
-- class_of(): return the class of a slot, which may be in a pool. `hash`: the fields of the host.
-- include: closed_because
-- include: to_int
local function state_of(cell, hash)
  local cause = closed_because(cell, to_int(hash.version), hash.epoch, hash.status, hash.alive_until_ms)
  return cause == '' and 'OPEN' or cause
end

local function slots_of(hash)
  local slots, names = {}, {}
  for field, value in pairs(hash) do
    local slot = string.match(field, '^capacity%.(.+)$')
    if slot then
      local claimed, external = to_int(hash['claimed.' .. slot], 0, MOST), to_int(hash['external.' .. slot], 0, MOST)
      local kept = hash.reservation and to_int(hash['kept.' .. slot], 0, MOST) or 0
      local capacity = to_int(value, 0, 0)
      slots[slot] = {
        capacity = capacity, claimed = claimed, external = external, kept = kept,
        free = math.max(0, capacity - claimed - external - kept),
      }
      names[#names + 1] = slot
    end
  end
  table.sort(names)
  return slots, names
end

local function class_of(slot)
  return string.match(slot, '([^/]+)$')
end
