-- parse_call(): ARGV and KEYS of claim.lua as tables. Its header says what lies where.
local SLOT_FIELDS = {'capacity.', 'claimed.', 'external.', 'min.', 'max.', 'step.'}

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
    call.hosts[i] = {name = take(), slots = {}, seen = {},
      keys = {host = KEYS[first + 1], claims = KEYS[first + 2], inbox = KEYS[first + 3]}}
  end
  for i = 1, tonumber(ARGV[10]) do
    local list = {fields = {'version', 'epoch', 'status', 'alive_until_ms', 'inbox'}}
    for number = 1, tonumber(take()) do
      local slot = take()
      list[number] = {slot = slot, amount = tonumber(take()), claimed = 'claimed.' .. slot}
      for kind = 1, #SLOT_FIELDS do
        list.fields[#list.fields + 1] = SLOT_FIELDS[kind] .. slot
      end
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
