-- passed(): return the objects of the keys from KEYS[first] on, in order and by name: `server-group:web`,
-- `pool:licences`, `gang:a`, and `host:h1`, whose set of claims and inbox follow it. needs(): note a missing object;
-- the script answers RETRY with those names before it has written anything, and the caller then passes their keys too.
-- leave_to_script(): exclude a host that the script writes itself.
-- include: object_at
local function passed(first)
  local objects = {}
  for i = first, #KEYS do
    local object = object_at(KEYS[i])
    local host = objects['host:' .. object.own_name]
    if host and (object.kind == 'claims' or object.kind == 'inbox') then
      host[object.kind] = object.key
    else
      objects[#objects + 1] = object
      objects[object.name] = object
    end
  end
  return objects
end

-- commit() treats such a host as known, and writes nothing of it.
local function leave_to_script(objects, key, name)
  objects['host:' .. name] = {kind = 'host', key = key, name = 'host:' .. name, apart = true, was = {}, now = {}}
end

local function needs(objects, lacking, name)
  if not objects[name] and not lacking[name] then
    lacking[name] = true
    lacking[#lacking + 1] = name
  end
  return objects[name]
end
