-- Server groups, shared pools and quotas, whose counts scripts change. Numbers change in memory (object_counts.lua);
-- each object is written once, groups and pools with one entry of the feed. A gang is passed like them, but the feed
-- does not report it: gangs.lua.
-- include: fence
-- include: in_chunks
-- include: object_counts
-- include: publish
-- include: quota_write
-- include: read_hash
-- include: to_int

-- Return the objects of which a number has changed, with the changes as `fields`, `set` and `gone`; quotas separately,
-- because the feed does not report them. A count of 0 is deleted: otherwise a group would keep one for every host that
-- a member was ever on.
local SPARSE = {['count.'] = true, ['used.'] = true}

local function changed_objects(objects)
  local changed = {quotas = {}}
  for _, object in ipairs(objects) do
    object.fields, object.set, object.gone = {}, {}, {}
    for field, number in pairs(object.now) do
      if number ~= (object.was[field] or 0) then
        local gone = number == 0 and SPARSE[string.match(field, '^%a+%.')]
        local list = gone and object.gone or object.set
        list[#list + 1] = field
        object.fields[#object.fields + 1] = field
        object.fields[#object.fields + 1] = gone and '' or text(number)
        if not gone then
          list[#list + 1] = text(number)
        end
      end
    end
    if #object.fields > 0 then
      local list = object.kind == 'quota' and changed.quotas or changed
      list[#list + 1] = object
    end
  end
  return changed
end

-- Return whether all fields are zero: the object is no longer declared, and its last claim has ended.
local NO_COUNT = {version = true, seq = true, over = true, broken = true}

local function is_left_over(object)
  for _, number in pairs(object.now) do
    if number > 0 then
      return false
    end
  end
  for field, value in pairs((read_hash(object.key))) do
    if not NO_COUNT[string.match(field, '^%a+')] and value ~= '0' and not object.now[field] then
      return false
    end
  end
  return true
end

-- A new object's version starts at the current seq, as a host's does, so that an object with a reused name is newer
-- than the former one.
local function write_objects(cell, changed, op)
  for number, object in ipairs(changed) do
    local ends = is_left_over(object)
    object.version = to_int(redis.call('HGET', object.key, 'version'), cell.seq, cell.seq) + 1
    publish(cell, object.kind, object.own_name, object.version, ends and 'removed' or op, #changed - number,
      ends and {} or object.fields, not ends and '' or nil)
    object.ends = ends
  end
  for _, object in ipairs(changed) do
    if object.ends then
      redis.call('DEL', object.key)
    else
      redis.call('HSET', object.key, 'version', text(object.version))
      in_chunks('HSET', object.key, object.set)
      in_chunks('HDEL', object.key, object.gone)
    end
    for field, number in pairs(object.now) do
      object.was[field] = number
    end
  end
  for _, quota in ipairs(changed.quotas) do
    write_quota(cell, quota)
  end
end
