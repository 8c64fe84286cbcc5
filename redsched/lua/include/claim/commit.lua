-- commit(): write the changes of claims, and everything that follows from them: the sums of hosts and other objects,
-- the feed, the hosts' sets and inboxes, gangs, deadlines. `claims` were loaded by load_claim() and changed by
-- transitions.lua; `objects` are those passed, hosts among them. Returns the names of missing keys, or what `refuse`
-- says about the claims; if there are any, nothing was written.
-- include: claim_changes
-- include: claim_record
-- include: due
-- include: fence
-- include: gang_exit
-- include: gangs
-- include: host_changes
-- include: publish
-- include: objects
local function beside_hosts(objects)
  local beside = {}
  for _, object in ipairs(objects) do
    if object.kind ~= 'host' and object.kind ~= 'gang' then
      beside[#beside + 1] = object
    end
  end
  return beside
end

local function add_all(object, changes)
  for field, by in pairs(changes) do
    add(object, field, by)
  end
end

-- Apply the changes of claims to the objects other than hosts that count them, in memory.
local function count_deltas(claims, objects)
  for _, claim in ipairs(claims) do
    for name, changes in pairs(claim.delta) do
      if objects[name].kind ~= 'host' then
        add_all(objects[name], changes)
      end
    end
  end
  return changed_objects(beside_hosts(objects))
end

-- Return the number of feed entries that write_claims() writes besides those of hosts.
local function count_beside(claims, objects)
  objects.changed = count_deltas(claims, objects)
  return #objects.changed
end

local function write_feed(cell, claims, objects, entries)
  local changed = objects.changed or count_deltas(claims, objects)
  for number, entry in ipairs(entries) do
    publish(cell, 'host', entry.name, entry.version, entry.op, #entries - number + #changed, entry.fields)
  end
  write_objects(cell, changed, entries[1] and entries[1].op or 'attest')
end

local function write_claim_changes(cell, claim, objects, due)
  notify_hosts(cell, claim, objects)
  write_sets(claim, objects)
  local first = claim.changed[1]
  if first and step_gang(claim, claim.before, first.end_reason or first.op) then
    due.at[claim.id] = cell.now_ms
  end
  note_gang_exit(claim)
  write_claim_record(claim)
  note_due(cell, claim, due)
end

local function write_claims(cell, claims, objects, due, entries)
  write_feed(cell, claims, objects, entries)
  for _, claim in ipairs(claims) do
    write_claim_changes(cell, claim, objects, due)
  end
  write_hosts(objects)
  write_gangs(objects)
  write_due(due)
  write_removals(objects)
end

local function commit(cell, claims, objects, due, refuse)
  local lacking = prepare(claims, objects)
  if #lacking > 0 then
    return lacking
  end
  local refusal = refuse and refuse(claims, objects)
  if refusal then
    return {}, refusal
  end
  local entries = {}
  for _, claim in ipairs(claims) do
    host_entries(cell, claim, objects, entries)
  end
  write_claims(cell, claims, objects, due, entries)
  finish(cell)
  return nil
end
