-- first_fit(): find the first candidate of a member that fits. looked_at(): append the state of the hosts read to a
-- reply.
--
-- `host.slots` is what the host holds with the amounts of the members placed so far, so that the members of one call
-- see each other although nothing is written before all of them are placed.
-- include: claim_arguments
-- include: closed_because
-- include: fit
-- include: to_int
local ANY = '*' -- a reservation: recovered work may use what is kept for any request

-- Return what a host keeps for another request that waits, after its first value in the order of a list of amounts.
-- Work that will have ended while that request certainly still waits may use it.
local function kept_for_another(cell, host, list)
  local fields = {'reservation_from_ms'}
  for number = 1, #list do
    fields[number + 1] = 'kept.' .. list[number].slot
  end
  local kept = redis.call('HMGET', host.key, unpack(fields))
  local is_over_by = ARG.max_runtime_s ~= '' and cell.now_ms + ARG.max_runtime_s * 1000
  return not (is_over_by and is_over_by <= to_int(kept[1], 0, 0)) and kept
end

-- Read a host's state and the slots of a list of amounts, in one command, unless they have been read.
local function look(cell, host, list)
  local known = host.closed
  for number = 1, known and #list or 0 do
    known = known and host.slots[list[number].slot]
  end
  if known then
    return
  end
  local values = redis.call('HMGET', host.key, unpack(list.fields))
  if not host.closed then
    local version = to_int(values[1])
    host.version, host.inbox = version or 0, to_int(values[5], 0, 0)
    host.claims, host.starting = to_int(values[6], 0, MOST), to_int(values[7], 0, MOST)
    host.closed = closed_because(cell, version, values[2], values[3], values[4])
  end
  local of_another = values[8] and ARG.reservation ~= ANY and values[8] ~= ARG.reservation
  local kept = of_another and kept_for_another(cell, host, list)
  local slots, at = host.slots, 9
  for number = 1, #list do
    local slot = list[number].slot
    slots[slot] = slots[slot] or {
      capacity = to_int(values[at], 0, 0), claimed = to_int(values[at + 1], 0, MOST),
      external = to_int(values[at + 2], 0, MOST) + (kept and to_int(kept[number + 1], 0, MOST) or 0),
      min = to_int(values[at + 3], 1, MOST), max = to_int(values[at + 4], MOST, 0),
      step = to_int(values[at + 5], 1, MOST), taken = 0,
    }
    at = at + 6
  end
end

-- Return the slot that is too small for the list of amounts, or nil.
local function lacking(host, list)
  for number = 1, #list do
    local slot = list[number].slot
    if not fits(list[number].amount, host.slots[slot]) then
      return slot
    end
  end
  for _, entry in ipairs(list.shared or {}) do
    local slot = entry.object.slots[entry.class]
    if not slot or not fits(entry.amount, slot) then
      return entry.slot
    end
  end
  return nil
end

local CANDIDATE = '(%d+):(%d+)()'

local function first_fit(cell, call, member)
  local number, host_number, list_number, at = 1, string.match(member.candidates, CANDIDATE)
  while at do
    local host, list = host_of(call, host_number + 0), call.lists[list_number + 0]
    look(cell, host, list)
    host.cause = host.closed
    if host.closed == '' then
      host.cause = lacking(host, list) or (call.conditions and call.conditions.violated_rule(member, host)) or ''
    end
    if host.cause == '' then
      for i = 1, #list do
        local amount, slot = list[i].amount, host.slots[list[i].slot]
        slot.claimed, slot.taken = slot.claimed + amount, slot.taken + amount
      end
      host.placed = host.placed + 1
      if call.conditions then
        call.conditions.place(member, host, list)
      end
      member.amounts, member.candidate = list, number
      return host
    end
    number = number + 1
    host_number, list_number, at = string.match(member.candidates, CANDIDATE, at)
  end
  return nil
end

-- After a refusal no member gets the amounts promised to it: the reply must show what is stored.
local function looked_at(call, reply)
  local refused, last = reply[1] == 'FULL', #reply
  for number, host in pairs(call.hosts) do
    if host.closed then
      local placed, length_at = refused and 0 or host.placed, last + 6
      reply[last + 1], reply[last + 2], reply[last + 3] = number, host.version, host.cause
      reply[last + 4], reply[last + 5], reply[length_at] = host.claims + placed, host.starting + placed, 0
      last = length_at
      for name, slot in pairs(host.slots) do
        reply[last + 1], reply[last + 2] = name, slot.claimed - (refused and slot.taken or 0)
        last = last + 2
      end
      reply[length_at] = (last - length_at) / 2
    end
  end
  return reply
end
