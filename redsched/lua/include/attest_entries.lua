-- parse_entries(): the entries of attest.lua as tables, and which of KEYS follows their keys. covers(): do they name
-- all that the store has on the host?
local function parse_entries()
  local entries, at = {}, 7
  local rivals_at = 9 + tonumber(ARGV[7])
  local function take()
    at = at + 1
    return ARGV[at]
  end
  for i = 1, tonumber(ARGV[7]) do
    local entry = {id = take(), word = take(), key = KEYS[9 + i]}
    if entry.word ~= 'store' then
      entry.token = take()
    end
    if entry.word == 'held' then
      entry.fields = {state = take(), project = take(), consumer = take(), digest = take(), token = entry.token}
      local rival = take()
      if rival ~= '' then
        entry.rival = {name = rival, host = KEYS[rivals_at + 1], claims = KEYS[rivals_at + 2],
          inbox = KEYS[rivals_at + 3]}
        rivals_at = rivals_at + 3
      end
      local group = take()
      entry.fields.group = group ~= '' and group or nil
      for _ = 1, tonumber(take()) do
        local field = take()
        entry.fields[field] = take()
      end
    end
    entries[i] = entry
  end
  return entries, rivals_at + 1
end

local function covers(entries, ids)
  local named = {}
  for _, entry in ipairs(entries) do
    named[entry.id] = true
  end
  for _, id in ipairs(ids) do
    if not named[id] then
      return false
    end
  end
  return true
end
