-- read_hash(): return a hash as a table, and whether it exists.
local function read_hash(key)
  local flat = redis.call('HGETALL', key)
  local hash = {}
  for i = 1, #flat, 2 do
    hash[flat[i]] = flat[i + 1]
  end
  return hash, #flat > 0
end
