-- commit(): write what has become of claims, and everything that follows from it: the sums of hosts and other things,
-- the feed, the hosts' sets and inboxes, gangs, deadlines. `claims` were loaded by load_claim() and changed by
-- transitions.lua; `things` are those passed, hosts among them. Returns the names of keys that are missing, and
-- has written nothing then.
-- include: claim_changes
-- include: claim_record
-- include: due
-- include: fence
-- include: gangs
-- include: host_changes
-- include: publish
-- include: things
local function beside_hosts(things)
  local beside = {}
  for _, thing in ipairs(things) do
    if thing.kind ~= 'host' and thing.kind ~= 'gang' then
      beside[#beside + 1] = thing
    end
  end
  return beside
end

local function add_all(thing, changes)
  for field, by in pairs(changes) do
    add(thing, field, by)
  end
end

-- Take what claims have changed in the things that count them beside hosts into these, in memory.
local function count_deltas(claims, things)
  for _, claim in ipairs(claims) do
    for name, changes in pairs(claim.delta) do
      if things[name].kind ~= 'host' then
        add_all(things[name], changes)
      end
    end
  end
  return changed_things(beside_hosts(things))
end

-- How many entries of the feed write_claims() is to write beside those of hosts.
local function count_beside(claims, things)
  things.changed = count_deltas(claims, things)
  return #things.changed
end

local function write_feed(cell, claims, things, entries)
  local changed = things.changed or count_deltas(claims, things)
  for number, entry in ipairs(entries) do
    publish(cell, 'host', entry.name, entry.version, entry.op, #entries - number + #changed, entry.fields)
  end
  write_things(cell, changed, entries[1] and entries[1].op or 'attest')
end

local function write_claim_changes(cell, claim, things, due)
  give_hints(cell, claim, things)
  write_sets(claim, things)
  local first = claim.changed[1]
  if first and step_gang(claim, claim.before, first.end_reason or first.op) then
    due.at[claim.id] = cell.now_ms
  end
  write_claim_record(claim)
  note_due(cell, claim, due)
end

local function write_claims(cell, claims, things, due, entries)
  write_feed(cell, claims, things, entries)
  for _, claim in ipairs(claims) do
    write_claim_changes(cell, claim, things, due)
  end
  write_hosts(things)
  write_gangs(things)
  write_due(due)
  write_removals(things)
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
