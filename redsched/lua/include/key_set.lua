-- key_set(): the keys of one claim, which the scripts that say something of it pass side by side: claim, host, claims,
-- inbox. Before them lie KEYS 4 deadlines and 5 chores.
local function key_set(first)
  return {claim = KEYS[first], host = KEYS[first + 1], claims = KEYS[first + 2], inbox = KEYS[first + 3]}
end
