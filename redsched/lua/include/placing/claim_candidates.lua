-- first_fit(): find the first candidate of a member that fits. looked_at(): append the state of the hosts read to a
-- reply.
--
-- `host.slots` is what the host holds with the amounts of the members placed so far, so that the members of one call
-- see each other although nothing is written before all of them are placed.
-- include: claim_arguments
-- include: fit
-- include: to_int
local function closed_because(cell, known, epoch, status, alive_until_ms)
  if not known then
    return 'UNKNOWN'
  elseif epoch ~= cell.epoch then
    return 'NOT_ATTESTED'
  elseif not (to_int(alive_until_ms, 0, 0) > cell.now_ms) then
    return 'DOWN'
  elseif status ~= 'enabled' then
    return status == 'draining' and 'DRAINING' or 'DISABLED'
  end
  return ''
end

-- Read a host's state and the slots of one list of amounts, in one command. Slots that were read before are not
-- replaced.
local function look(cell, host, list)
  if host.seen[list] then
    return
  end
  local values = redis.call('HMGET', host.keys.host, unpack(list.fields))
  if not host.closed then
    local version = to_int(values[1])
    host.version, host.inbox = version or 0, to_int(values[5], 0, 0)
    host.claims, host.starting = to_int(values[6], 0, MOST), to_int(values[7], 0, MOST)
    host.closed = closed_because(cell, version, values[2], values[3], values[4])
  end
  for number, entry in ipairs(list) do
    if not host.slots[entry.slot] then
      local at = 6 * number + 2
      host.slots[entry.slot] = {
        capacity = to_int(values[at], 0, 0), claimed = to_int(values[at + 1], 0, MOST),
        external = to_int(values[at + 2], 0, MOST), min = to_int(values[at + 3], 1, MOST),
        max = to_int(values[at + 4], MOST, 0), step = to_int(values[at + 5], 1, MOST), stored = values[at + 1],
      }
    end
  end
  host.seen[list] = true
end

-- Return the slot that is too small for the list of amounts, or nil.
local function lacking(host, list)
  for _, entry in ipairs(list) do
    if not fits(entry.amount, host.slots[entry.slot]) then
      return entry.slot
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

local function first_fit(cell, call, member)
  local number = 0
  for host_number, list_number in string.gmatch(member.candidates, '(%d+):(%d+)') do
    local host, list = host_of(call, tonumber(host_number)), call.lists[tonumber(list_number)]
    number = number + 1
    look(cell, host, list)
    host.cause = host.closed
    if host.closed == '' then
      host.cause = lacking(host, list) or (call.conditions and call.conditions.violated_rule(member, host)) or ''
    end
    if host.cause == '' then
      for _, entry in ipairs(list) do
        local slot = host.slots[entry.slot]
        slot.claimed, slot.taken = slot.claimed + entry.amount, true
      end
      if call.conditions then
        call.conditions.place(member, host, list)
      end
      member.amounts, member.candidate, host.placed = list, number, host.placed + 1
      return host
    end
  end
  return nil
end

-- After a refusal no member gets the amounts promised to it: the reply must show what is stored.
local function looked_at(call, reply)
  local refused = reply[1] == 'FULL'
  for number, host in pairs(call.hosts) do
    if host.closed then
      reply[#reply + 1] = number
      reply[#reply + 1] = host.version
      reply[#reply + 1] = host.cause
      reply[#reply + 1] = host.claims + (refused and 0 or host.placed)
      reply[#reply + 1] = host.starting + (refused and 0 or host.placed)
      local length_at = #reply + 1
      reply[length_at] = 0
      for name, slot in pairs(host.slots) do
        reply[#reply + 1] = name
        reply[#reply + 1] = refused and to_int(slot.stored, 0, MOST) or slot.claimed
        reply[length_at] = reply[length_at] + 1
      end
    end
  end
  return reply
end
