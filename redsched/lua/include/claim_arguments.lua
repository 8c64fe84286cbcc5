-- parse_call(): ARGV and KEYS of claim.lua as tables. Its header says what lies where.
local function parse_call()
  local call = {epoch = ARGV[1], decided_at_ms = tonumber(ARGV[2]), fresh = ARGV[3] == '1',
    lease_ms = tonumber(ARGV[4]), digest = ARGV[5], project = ARGV[6], consumer = ARGV[7],
    members = {}, hosts = {}, lists = {}}
  local at = 10
  local function take()
    at = at + 1
    return ARGV[at]
  end
  local member_count = tonumber(ARGV[8])
  for i = 1, tonumber(ARGV[9]) do
    local first = 4 + member_count + 3 * (i - 1)
    call.hosts[i] = {name = take(), slots = {},
      keys = {host = KEYS[first + 1], claims = KEYS[first + 2], inbox = KEYS[first + 3]}}
  end
  for i = 1, tonumber(ARGV[10]) do
    local list = {}
    for _ = 1, tonumber(take()) do
      list[#list + 1] = {slot = take(), amount = tonumber(take())}
    end
    call.lists[i] = list
  end
  for i = 1, member_count do
    local member = {id = take(), key = KEYS[4 + i], candidates = {}}
    for _ = 1, tonumber(take()) do
      local host, list = tonumber(take()), tonumber(take())
      member.candidates[#member.candidates + 1] = {host = call.hosts[host], list = call.lists[list]}
    end
    call.members[i] = member
  end
  return call
end
