-- object_at(): return the object of a key other than a host's: a server group, a shared pool, a gang or a quota. Its
-- name is the end of the key: `server-group:web`, `pool:licences`, `gang:a`, `quota:web`.
local function object_at(key)
  local name = string.match(key, '}:(.+)$')
  local kind, own_name = string.match(name, '^([^:]+):(.+)$')
  return {key = key, name = name, kind = kind, own_name = own_name, was = {}, now = {}}
end
