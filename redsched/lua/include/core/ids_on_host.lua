-- ids_on_host(named): return the ids in KEY.claims; nil if `named`, by id, lacks one: a claim has joined the host since
-- the caller read the set, and the caller must read it again (RETRY).
local function ids_on_host(named)
  local ids = redis.call('SMEMBERS', KEY.claims)
  for _, id in ipairs(ids) do
    if not named[id] then
      return nil
    end
  end
  return ids
end
