-- passed(): what the keys from KEYS[first] on stand for, in order and by name: `server-group:web`, `pool:licences`,
-- `gang:a`, and `host:h1`, whose set of claims and inbox come with it. needs(): note what a script lacks; it answers
-- RETRY with those names before it has written anything, and the caller passes their keys too. leave_to_script(): a
-- host that the script writes by itself.
-- include: thing_at
local function passed(first)
  local things = {}
  for i = first, #KEYS do
    local thing = thing_at(KEYS[i])
    local host = things['host:' .. thing.own_name]
    if host and (thing.kind == 'claims' or thing.kind == 'inbox') then
      host[thing.kind] = thing.key
    else
      things[#things + 1] = thing
      things[thing.name] = thing
    end
  end
  return things
end

-- commit() takes such a host for known, and writes nothing of it.
local function leave_to_script(things, key, name)
  things['host:' .. name] = {kind = 'host', key = key, name = 'host:' .. name, apart = true, was = {}, now = {}}
end

local function needs(things, lacking, name)
  if not things[name] and not lacking[name] then
    lacking[name] = true
    lacking[#lacking + 1] = name
  end
  return things[name]
end
