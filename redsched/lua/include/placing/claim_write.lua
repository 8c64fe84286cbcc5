-- The writes after every member was placed. append_placed(): write the feed entry of a placement; `more` entries
-- follow. write_claimed_host(): write what a host holds now, once for all members placed on it. write_beside(): write
-- the gang that the claims of a call form, and the request that they came from.
-- include: fence
-- include: notify
-- include: in_chunks
-- include: keep_text
-- include: publish

-- Report a placement in the feed and notify the host's agent. Return the id of the inbox entry.
local function append_placed(cell, member, more)
  local host = member.host
  host.version = host.version + 1
  host.claims_now = host.claims_now or text(host.claims + host.placed)
  host.starting_now = host.starting_now or text(host.starting + host.placed)
  local fields = {'claim', member.id, 'claims', host.claims_now, 'starting', host.starting_now}
  for _, entry in ipairs(member.amounts) do
    fields[#fields + 1] = entry.claimed
    fields[#fields + 1] = text(host.slots[entry.slot].claimed)
  end
  if member.again and member.again.reason then
    fields[#fields + 1], fields[#fields + 2] = 'reason', member.again.reason
  end
  publish(cell, 'host', host.name, host.version, 'claimed', more, fields)
  member.token = cell.epoch .. '.' .. text(cell.seq)
  host.inbox = host.inbox + 1
  local entry_id = notify(cell, host.keys.inbox, host.inbox, 'claim', member.id, member.token)
  redis.call('SADD', host.keys.claims, member.id)
  return entry_id
end

local function write_claimed_host(host)
  local fields = {'version', text(host.version), 'inbox', text(host.inbox), 'claims', host.claims_now,
    'starting', host.starting_now}
  for slot, held in pairs(host.slots) do
    if held.taken then
      fields[#fields + 1] = 'claimed.' .. slot
      fields[#fields + 1] = text(held.claimed)
    end
  end
  redis.call('HSET', host.keys.host, unpack(fields))
end

local function write_beside(call)
  local request = ARG.request ~= ''
  if call.gang then
    local fields = {'waiting', text(#call.members)}
    for _, member in ipairs(call.members) do
      fields[#fields + 1] = 'member.' .. member.id
      fields[#fields + 1] = member.host.name
    end
    in_chunks('HSET', KEYS[#KEYS - (request and 1 or 0)], fields)
  end
  if request then
    keep_request(KEYS[#KEYS], ARG.request)
  end
end
