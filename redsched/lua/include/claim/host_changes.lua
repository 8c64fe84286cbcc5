-- The effects of changed claims on their hosts: entries of the feed, sums, sets of claims and inboxes. `claims` come
-- from prepare().
-- include: claim_changes
-- include: counters
-- include: notify
-- include: in_chunks
-- include: remove_members
-- include: end_reason
-- include: objects
local function extend(list, values)
  for _, value in ipairs(values or {}) do
    list[#list + 1] = value
  end
end

-- Add a claim's changes to a host; the host's new absolute numbers go into `fields`.
local function count_into_host(host, delta, fields)
  for field, by in pairs(delta or {}) do
    add(host, field, by)
    extend(fields, {field, text(host.now[field])})
  end
end

-- Append the amounts of a freed placement, which the claim's hash no longer has.
local function add_held_amounts(claim, placement, fields)
  if not claim.placements[placement.placed] then
    for slot, amount in pairs(placement.amounts) do
      extend(fields, {'held.' .. slot, text(amount)})
    end
  end
end

-- A host whose hash is gone is not written: a new hash would look like a host that has never reported. Its claims set
-- and inbox are left to repair_gone_host.lua.
local function read_version(cell, host)
  if not host.version then
    local version = redis.call('HGET', host.key, 'version')
    host.apart = not version and redis.call('EXISTS', host.key) == 0
    host.version = to_int(version, cell.seq, cell.seq)
  end
end

local function host_entry(claim, placement, host)
  local fields = {'claim', claim.id}
  count_into_host(host, claim.delta[host.name], fields)
  add_held_amounts(claim, placement, fields)
  add_end_reason(claim, placement, host, fields)
  extend(fields, host.also)
  host.version = host.version + 1
  return {name = placement.host, version = host.version, op = placement.op, fields = fields}
end

-- Append the feed entries about a claim's hosts: one for each, with the host's new absolute numbers.
local function host_entries(cell, claim, objects, entries)
  local seen = {}
  for _, placement in ipairs(claim.changed) do
    local host = objects['host:' .. placement.host]
    if placement.op and not seen[host] and not host.apart then
      seen[host] = true
      read_version(cell, host)
      entries[#entries + 1] = not host.apart and host_entry(claim, placement, host) or nil
    end
  end
end

local function write_host(host)
  local fields = {'version', text(host.version)}
  for field, number in pairs(host.now) do
    if number ~= host.was[field] then
      extend(fields, {field, text(number)})
    end
  end
  extend(fields, host.also)
  extend(fields, host.note)
  in_chunks('HSET', host.key, fields)
end

local function write_hosts(objects)
  for _, host in ipairs(objects) do
    if host.kind == 'host' and host.version and not host.apart then
      write_host(host)
    end
  end
end

local function notify_host(cell, claim, placement, host)
  local old = placement.inbox_id
  if placement.notify or not claim.placements[placement.placed] then
    placement.inbox_id = nil
    host.taken = host.taken or {}
    host.taken[#host.taken + 1] = old
  end
  if placement.notify and placement.notify ~= 'none' then
    add(host, 'inbox', 1)
    placement.inbox_id = notify(cell, host.inbox, host.now.inbox, placement.notify, claim.id, placement.token)
  end
end

-- Add entries to the inboxes of a claim's hosts. New ones come before old ones are removed, so that an inbox with
-- something to report exists throughout.
local function notify_hosts(cell, claim, objects)
  for _, placement in ipairs(claim.changed) do
    local host = objects['host:' .. placement.host]
    if not host.apart then
      notify_host(cell, claim, placement, host)
    end
  end
end

local function is_on(claim, host)
  for _, placement in pairs(claim.placements) do
    if placement.host == host then
      return true
    end
  end
  return false
end

local function write_sets(claim, objects)
  for _, placement in ipairs(claim.changed) do
    local host = objects['host:' .. placement.host]
    local was_on, on = is_on(claim.before, placement.host), is_on(claim, placement.host)
    if on and not was_on and not host.apart then
      redis.call('SADD', host.claims, claim.id)
    elseif was_on and not on and not host.apart then
      host.leaving = host.leaving or {}
      host.leaving[#host.leaving + 1] = claim.id
    end
  end
end

-- Commands that may remove a key come last, and once for each key.
local function write_removals(objects)
  for _, host in ipairs(objects) do
    remove_members('SREM', host.claims, host.leaving or {})
    if host.taken and #host.taken > 0 then
      in_chunks('XDEL', host.inbox, host.taken)
      if redis.call('XLEN', host.inbox) == 0 then
        redis.call('DEL', host.inbox)
      end
    end
  end
end
