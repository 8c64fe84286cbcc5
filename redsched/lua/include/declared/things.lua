-- Server groups, shared pools and quotas, as scripts change what is counted in them. Numbers change in memory (`was`,
-- `now`); each thing is written once, groups and pools with one entry of the feed. A gang is passed like them, and is
-- no matter of the feed: gangs.lua.
--
-- What a field is now; its thing's `hash` where that has been read, else the store. Unreadable lets nothing in (MOST).
-- include: fence
-- include: in_chunks
-- include: publish
-- include: quota_write
-- include: read_hash
-- include: to_int
local function number_of(thing, field)
  local number = thing.now[field]
  if not number then
    if thing.kind == 'quota' and not thing.hash then
      thing.hash = read_hash(thing.key)
    end
    local stored
    if thing.hash then
      stored = thing.hash[field]
    else
      stored = redis.call('HGET', thing.key, field)
    end
    number = to_int(stored, 0, MOST)
    thing.was[field], thing.now[field] = number, number
  end
  return number
end

local function add(thing, field, amount)
  thing.now[field] = math.max(0, math.min(MOST, number_of(thing, field) + amount))
end

-- Those of which a number has changed, with their changes as `fields`, `set` and `gone`; quotas apart, for the feed
-- does not tell of them. A count of 0 is no field: a group would keep one for every host that a member ever was on.
local SPARSE = {['count.'] = true, ['used.'] = true}

local function changed_things(things)
  local changed = {quotas = {}}
  for _, thing in ipairs(things) do
    thing.fields, thing.set, thing.gone = {}, {}, {}
    for field, number in pairs(thing.now) do
      if number ~= (thing.was[field] or 0) then
        local gone = number == 0 and SPARSE[string.match(field, '^%a+%.')]
        local list = gone and thing.gone or thing.set
        list[#list + 1] = field
        thing.fields[#thing.fields + 1] = field
        thing.fields[#thing.fields + 1] = gone and '' or text(number)
        if not gone then
          list[#list + 1] = text(number)
        end
      end
    end
    if #thing.fields > 0 then
      local list = thing.kind == 'quota' and changed.quotas or changed
      list[#list + 1] = thing
    end
  end
  return changed
end

-- Is nothing left but zeros? Then nobody declares it any more, and its last claim has gone.
local NO_COUNT = {version = true, seq = true, over = true}

local function is_left_over(thing)
  for _, number in pairs(thing.now) do
    if number > 0 then
      return false
    end
  end
  for field, value in pairs((read_hash(thing.key))) do
    if not NO_COUNT[string.match(field, '^%a+')] and value ~= '0' and not thing.now[field] then
      return false
    end
  end
  return true
end

-- A new thing's version starts at the present seq, as a host's does: a name that comes back is newer than it was.
local function write_things(cell, changed, op)
  for number, thing in ipairs(changed) do
    local ends = is_left_over(thing)
    thing.version = to_int(redis.call('HGET', thing.key, 'version'), cell.seq, cell.seq) + 1
    publish(cell, thing.kind, thing.own_name, thing.version, ends and 'removed' or op, #changed - number,
      ends and {} or thing.fields)
    thing.ends = ends
  end
  for _, thing in ipairs(changed) do
    if thing.ends then
      redis.call('DEL', thing.key)
    else
      redis.call('HSET', thing.key, 'version', text(thing.version))
      in_chunks('HSET', thing.key, thing.set)
      in_chunks('HDEL', thing.key, thing.gone)
    end
    for field, number in pairs(thing.now) do
      thing.was[field] = number
    end
  end
  for _, quota in ipairs(changed.quotas) do
    write_quota(cell, quota)
  end
end
