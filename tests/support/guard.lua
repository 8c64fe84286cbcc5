-- Stands before a script in tests, and lets it touch no key that it may have removed: see tests/support/guard.py.
--
-- A server removes a hash, set or sorted set with its last member. So a key counts as removed when a write leaves it
-- absent, and also when members were taken from it and nothing proves that another one is left: where the store of the
-- test holds more than that script needs, a smaller store would have lost the key. Proof is a member that a command of
-- the same script names or returns, and that is in the key when it is touched.
local redis = (function(server)
  local KEYLESS, MANY_KEYS = {TIME = true, INFO = true}, {DEL = true, UNLINK = true, EXISTS = true}
  local READS = {EXISTS = true, GET = true, HGET = true, HGETALL = true, HLEN = true, HMGET = true, PTTL = true,
    SISMEMBER = true, SMEMBERS = true, XLEN = true, XRANGE = true, XREVRANGE = true, ZCARD = true, ZRANGE = true,
    ZSCORE = true}
  local LOOK_UP = {HDEL = 'HGET', SREM = 'SISMEMBER', ZREM = 'ZSCORE'}
  local LISTS_MEMBERS = {HGETALL = 2, SMEMBERS = 1, ZRANGE = 1}
  local removed, thinned, named = {}, {}, {}

  local function keys_of(words)
    if KEYLESS[words[1]] then
      return {}
    elseif MANY_KEYS[words[1]] then
      return {unpack(words, 2)}
    end
    return {words[2]}
  end

  local function note(key, members, first, step)
    named[key] = named[key] or {}
    for i = first, #members, step do
      table.insert(named[key], tostring(members[i]))
    end
  end

  -- By pcall: in a slot that is being moved the server refuses even to look at a key that is not there.
  local function exists(key)
    return server.pcall('EXISTS', key) == 1
  end

  local function is_proven(key)
    for _, member in ipairs(named[key] or {}) do
      local found = server.pcall(thinned[key].look_up, key, member)
      if found and found ~= 0 and type(found) ~= 'table' then
        return true
      end
    end
    return false
  end

  local function check(key, words)
    if thinned[key] and not is_proven(key) then
      removed[key] = thinned[key].command
    end
    if removed[key] then
      error({err = 'GUARD ' .. words[1] .. ' on ' .. key .. ', which ' .. removed[key] .. ' may have removed'})
    end
  end

  local function run(words)
    local reply = server.call(unpack(words))
    if LOOK_UP[words[1]] and reply > 0 then
      thinned[words[2]] = {command = words[1], look_up = LOOK_UP[words[1]]}
    elseif LISTS_MEMBERS[words[1]] then
      note(words[2], reply, 1, LISTS_MEMBERS[words[1]])
    end
    return reply
  end

  local function call(...)
    local words, before = {...}, {}
    local keys = keys_of(words)
    for _, key in ipairs(keys) do
      note(key, words, 3, 1)
      check(key, words)
      before[key] = not READS[words[1]] and exists(key)
    end
    local reply = run(words)
    for _, key in ipairs(keys) do
      if before[key] and not exists(key) then
        removed[key] = words[1]
      end
    end
    return reply
  end

  return setmetatable({call = call, pcall = call}, {__index = server})
end)(redis)
