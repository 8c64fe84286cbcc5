-- parse_entries(): the entries of attest.lua as tables. named_in(): the ids that they name, as a set.
local function parse_entries(first)
  local entries, at = {}, first - 1
  local function take()
    at = at + 1
    return ARGV[at]
  end
  for i = 1, tonumber(ARG.entries) do
    local entry = {id = take(), word = take(), key = KEYS[11 + i]}
    if entry.word ~= 'store' then
      entry.placed, entry.token = take(), take()
    end
    if entry.word == 'ended' then
      entry.end_reason, entry.was_active, entry.ended_ago_ms = take(), take() == '1', tonumber(take())
    elseif entry.word == 'held' then
      entry.root, entry.state, entry.was_active, entry.record = take(), take(), take() == '1', {}
      for _ = 1, tonumber(take()) do
        local field = take()
        entry.record[field] = take()
      end
    end
    entries[i] = entry
  end
  return entries
end

local function named_in(entries)
  local named = {}
  for _, entry in ipairs(entries) do
    named[entry.id] = true
  end
  return named
end
