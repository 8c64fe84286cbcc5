-- The writes after every member was placed. append_placed(): write the feed entry of a placement; `more` entries
-- follow. write_beside(): write the gang that the claims of a call form, and the request that they came from.
-- include: fence
-- include: notify
-- include: publish

-- Return the fields of a host that the members placed on it change, with their values after the whole call.
local function changed_by_claims(host)
  local changed = {'claims', text(host.claims + host.placed), 'starting', text(host.starting + host.placed)}
  for slot, held in pairs(host.slots) do
    if held.taken > 0 then
      changed[#changed + 1], changed[#changed + 2] = 'claimed.' .. slot, text(held.claimed)
    end
  end
  return changed
end

-- Report a placement in the feed and notify the host's agent. Return the id of the inbox entry.
local function append_placed(cell, member, more)
  local host = member.host
  host.version = host.version + 1
  host.changed = host.changed or changed_by_claims(host)
  local fields = {'claim', member.id, unpack(host.changed)}
  if member.again and member.again.reason then
    fields[#fields + 1], fields[#fields + 2] = 'reason', member.again.reason
  end
  publish(cell, 'host', host.name, host.version, 'claimed', more, fields, member.origin)
  member.token = cell.epoch .. '.' .. cell.seq_text
  host.inbox = host.inbox + 1
  local entry_id = notify(cell, KEYS[host.keys_after + 3], host.inbox, 'claim', member.id, member.token,
    member.origin)
  redis.call('SADD', KEYS[host.keys_after + 2], member.id)
  return entry_id
end

local function write_beside(...)
  -- include: claim_beside
  write_gang_and_request(...)
end
