-- first_fit() walks one member's candidates; looked_at() appends what was seen of the hosts to a reply.
--
-- `host.slots` is what the host holds once the members placed so far have their amounts, so that the members of one
-- call see each other although nothing is written before all of them have a place.
local STATES = {'version', 'epoch', 'status', 'alive_until_ms', 'inbox'}

local function look(cell, host)
  local state = redis.call('HMGET', host.keys.host, unpack(STATES))
  host.version, host.inbox = tonumber(state[1] or '0'), tonumber(state[5] or '0')
  if not state[1] then
    host.closed = 'UNKNOWN'
  elseif state[2] ~= cell.epoch then
    host.closed = 'ATTEST'
  elseif not (tonumber(state[4] or '0') > cell.now_ms) then
    host.closed = 'DOWN'
  elseif state[3] ~= 'enabled' then
    host.closed = state[3] == 'draining' and 'DRAINING' or 'DISABLED'
  else
    host.closed = ''
  end
end

local function slot_of(host, name)
  if not host.slots[name] then
    local held = redis.call('HMGET', host.keys.host, 'capacity.' .. name, 'claimed.' .. name, 'external.' .. name,
      'min.' .. name, 'max.' .. name, 'step.' .. name)
    host.slots[name] = {
      capacity = tonumber(held[1] or '0'), claimed = tonumber(held[2] or '0'), external = tonumber(held[3] or '0'),
      min = tonumber(held[4] or '1'), max = tonumber(held[5] or '9007199254740991'), step = tonumber(held[6] or '1'),
    }
  end
  return host.slots[name]
end

-- The slot that is too small for the list of amounts, or nil.
local function lacking(host, list)
  for _, entry in ipairs(list) do
    if not fits(entry.amount, slot_of(host, entry.slot)) then
      return entry.slot
    end
  end
  return nil
end

local function first_fit(cell, member)
  for _, candidate in ipairs(member.candidates) do
    local host = candidate.host
    if not host.closed then
      look(cell, host)
    end
    host.cause = host.closed
    if host.closed == '' then
      host.cause = lacking(host, candidate.list) or ''
    end
    if host.cause == '' then
      for _, entry in ipairs(candidate.list) do
        local slot = slot_of(host, entry.slot)
        slot.claimed = slot.claimed + entry.amount
      end
      member.amounts = candidate.list
      return host
    end
  end
  return nil
end

-- After a refusal the amounts promised to earlier members are not held by anyone: what is told must be what is stored.
local function looked_at(call, reply)
  local refused = reply[1] == 'FULL'
  for number, host in ipairs(call.hosts) do
    if host.closed then
      reply[#reply + 1] = number
      reply[#reply + 1] = host.version
      reply[#reply + 1] = host.cause
      local length_at = #reply + 1
      reply[length_at] = 0
      for name, slot in pairs(host.slots) do
        local stored = refused and redis.call('HGET', host.keys.host, 'claimed.' .. name) or slot.claimed
        reply[#reply + 1] = name
        reply[#reply + 1] = tonumber(stored or '0')
        reply[length_at] = reply[length_at] + 1
      end
    end
  end
  return reply
end
