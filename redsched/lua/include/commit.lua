-- commit(): write what has become of claims, and everything that follows from it: the sums of hosts and other things,
-- the feed, the hosts' sets and inboxes, gangs, deadlines. `claims` were loaded by load_claim() and changed by
-- include/transitions.lua; `things` are those passed, hosts among them. Returns the names of keys that are missing, and
-- has written nothing then.
-- include: claim_record
-- include: counters
-- include: due
-- include: fence
-- include: gangs
-- include: hint
-- include: in_chunks
-- include: passed
-- include: publish
-- include: things
-- include: transitions
local function is_on(claim, host)
  for _, placement in pairs(claim.placements) do
    if placement.host == host then
      return true
    end
  end
  return false
end

-- Why a claim has ended: it was closed, or as its last placement did. One that was unshelved and has never come up is
-- shelved still.
local function end_reason(claim, last)
  local closed, why = claim.fields.closed, claim.fields.closed_why
  local was_active = claim.current and not ranks_above(last, claim.current)
  if closed and (not newer(last.root, closed) or (why == 'shelved' and not was_active)) then
    return why
  end
  return last.op or last.why or 'void'
end

-- A claim without a placement waits for the next one, or has ended: what is left of it answers whoever still asks.
local function conclude(claim)
  if next(claim.placements) then
    return
  end
  if claim.fields.voided_at_ms and not claim.freed then
    return -- an id that nobody has known yet: there is nothing to shelve
  end
  local last = claim.freed and claim.freed[#claim.freed] or claim.tombstone
  local fields = claim.fields
  local state, why = 'ended', end_reason(claim, last)
  if fields.retry_root then
    state, why = 'pending', fields.retry_why
  else
    for field in pairs(fields) do
      fields[field] = (SURVIVE[field] or string.sub(field, 1, #TRIED) == TRIED) and fields[field] or nil
    end
  end
  claim.tombstone = {host = last.host, token = last.token, placed = last.placed, root = last.root, state = state,
    why = why, amounts = {}, wanted = {}, counted = {}}
end

-- The placements that something has happened to in this script, those that are gone included. Without `op` it is
-- nothing that the feed tells of.
local function changed_placements(claim)
  local changed = {}
  for _, placement in pairs(claim.placements) do
    changed[#changed + 1] = (placement.op or placement.hint) and placement or nil
  end
  for _, placement in ipairs(claim.freed or {}) do
    changed[#changed + 1] = placement
  end
  return changed
end

local function prepare(claims, things)
  local lacking = {}
  bind_gangs(claims, things, lacking)
  for _, claim in ipairs(claims) do
    conclude(claim)
    claim.before = parse_claim(claim.id, claim.key, claim.stored, claim.exists)
    claim.delta = difference(counters(claim.before), counters(claim))
    claim.changed = changed_placements(claim)
    for name in pairs(claim.delta) do
      needs(things, lacking, name)
    end
    for _, placement in ipairs(claim.changed) do
      needs(things, lacking, 'host:' .. placement.host)
    end
  end
  return lacking
end

-- What the feed is to say of a claim's hosts: one entry for each, with the host's new absolute numbers.
local function host_entries(cell, claim, things, entries)
  local seen = {}
  for _, placement in ipairs(claim.changed) do
    local name = 'host:' .. placement.host
    local host, fields = things[name], {'claim', claim.id}
    if placement.op and not seen[name] and not host.apart then
      seen[name] = true
      for field, by in pairs(claim.delta[name] or {}) do
        add(host, field, by)
        fields[#fields + 1] = field
        fields[#fields + 1] = text(host.now[field])
      end
      for _, value in ipairs(host.also or {}) do
        fields[#fields + 1] = value
      end
      host.version = (host.version or whole(redis.call('HGET', host.key, 'version'), cell.seq, cell.seq)) + 1
      entries[#entries + 1] = {name = placement.host, version = host.version, op = placement.op, fields = fields}
    end
  end
end

local function write_host(host)
  local fields = {'version', text(host.version)}
  for field, number in pairs(host.now) do
    if number ~= host.was[field] then
      fields[#fields + 1] = field
      fields[#fields + 1] = text(number)
    end
  end
  for _, list in ipairs({host.also or {}, host.note or {}}) do
    for _, value in ipairs(list) do
      fields[#fields + 1] = value
    end
  end
  in_chunks('HSET', host.key, fields)
end

-- Tell the hosts of a claim what is to be done. New hints come before old ones are taken, so that an inbox which has
-- something to say is there throughout.
local function give_hints(cell, claim, things)
  for _, placement in ipairs(claim.changed) do
    local host, old = things['host:' .. placement.host], placement.inbox_id
    if not host.apart and (placement.hint or not claim.placements[placement.placed]) then
      placement.inbox_id = nil
      host.taken = host.taken or {}
      host.taken[#host.taken + 1] = old
    end
    if not host.apart and placement.hint and placement.hint ~= 'none' then
      add(host, 'inbox', 1)
      placement.inbox_id = hint(cell, host.inbox, host.now.inbox, placement.hint, claim.id, placement.token)
    end
  end
end

local function write_sets(claim, things)
  for _, placement in ipairs(claim.changed) do
    local host = things['host:' .. placement.host]
    local was_on, on = is_on(claim.before, placement.host), is_on(claim, placement.host)
    if on and not was_on and not host.apart then
      redis.call('SADD', host.claims, claim.id)
    elseif was_on and not on and not host.apart then
      host.leaving = host.leaving or {}
      host.leaving[#host.leaving + 1] = claim.id
    end
  end
end

-- What may remove a key comes last, and once for each key.
local function write_removals(things)
  for _, host in ipairs(things) do
    in_chunks('SREM', host.claims, host.leaving or {})
    if host.taken and #host.taken > 0 then
      in_chunks('XDEL', host.inbox, host.taken)
      if redis.call('XLEN', host.inbox) == 0 then
        redis.call('DEL', host.inbox)
      end
    end
  end
end

local function beside_hosts(things)
  local beside = {}
  for _, thing in ipairs(things) do
    if thing.kind ~= 'host' and thing.kind ~= 'gang' then
      beside[#beside + 1] = thing
    end
  end
  return beside
end

-- Take what claims have changed in the things that count them beside hosts into these, in memory.
local function count_deltas(claims, things)
  for _, claim in ipairs(claims) do
    for name, fields in pairs(claim.delta) do
      if things[name].kind ~= 'host' then
        for field, by in pairs(fields) do
          add(things[name], field, by)
        end
      end
    end
  end
  return changed_things(beside_hosts(things))
end

local function write_claims(cell, claims, things, due, entries)
  local changed = things.changed or count_deltas(claims, things)
  for number, entry in ipairs(entries) do
    publish(cell, 'host', entry.name, entry.version, entry.op, #entries - number + #changed, entry.fields)
  end
  write_things(cell, changed, entries[1] and entries[1].op or 'attest')
  for _, claim in ipairs(claims) do
    give_hints(cell, claim, things)
    write_sets(claim, things)
    local changed_one = claim.changed[1]
    if changed_one and step_gang(claim, claim.before, changed_one.why or changed_one.op) then
      due.at[claim.id] = cell.now_ms
    end
    write_claim_record(claim)
    note_due(cell, claim, due)
  end
  for _, host in ipairs(things) do
    if host.kind == 'host' and host.version and not host.apart then
      write_host(host)
    end
  end
  write_gangs(things)
  write_due(due)
  write_removals(things)
end

-- How many entries of the feed write_claims() is to write beside those of hosts.
local function count_beside(claims, things)
  things.changed = count_deltas(claims, things)
  return #things.changed
end

local function commit(cell, claims, things, due)
  local lacking = prepare(claims, things)
  if #lacking > 0 then
    return lacking
  end
  local entries = {}
  for _, claim in ipairs(claims) do
    host_entries(cell, claim, things, entries)
  end
  write_claims(cell, claims, things, due, entries)
  finish(cell)
  return nil
end
