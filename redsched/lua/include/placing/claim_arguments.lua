-- parse_call(): ARGV and KEYS of claim.lua and replace.lua as tables; their headers say what lies where. `parse_more`
-- reads what follows the members. host_of(): one of the hosts of a call.
--
-- Hosts and candidates become tables only when they are looked at: mostly the first candidate fits, and tables for all
-- of them would cost a tenth of the whole claim.
-- include: claim_conditions
-- include: object_at
local SLOT_FIELDS = {'capacity.', 'claimed.', 'external.', 'min.', 'max.', 'step.'}

local function parse_call(parse_more)
  local call = {epoch = ARGV[1], decided_at_ms = tonumber(ARGV[2]), seen_seq = tonumber(ARGV[3]),
    fresh = ARGV[4] == '1', lease_ms = tonumber(ARGV[5]), digest = ARGV[6], project = ARGV[7], consumer = ARGV[8],
    members = {}, hosts = {}, lists = {}}
  call.member_count, call.host_count = tonumber(ARGV[9]), tonumber(ARGV[10])
  call.quota = call.project ~= '' and object_at(KEYS[7]) or nil
  call.limited, call.gang = ARGV[13] == '1', ARGV[14] == '1'
  call.call_id, call.max_attempts, call.on_exit = ARGV[15], ARGV[16], ARGV[17]
  call.most_alternates, call.alternates, call.gang_members = tonumber(ARGV[18]), ARGV[19], ARGV[20]
  local at = 20 + call.host_count -- past the hosts' names
  local function take()
    at = at + 1
    return ARGV[at]
  end
  for i = 1, tonumber(ARGV[11]) do
    local list = {fields = {'version', 'epoch', 'status', 'alive_until_ms', 'inbox', 'claims', 'starting'}}
    for number = 1, tonumber(take()) do
      local slot = take()
      list[number] = {slot = slot, amount = tonumber(take()), claimed = 'claimed.' .. slot}
      for kind = 1, #SLOT_FIELDS do
        list.fields[#list.fields + 1] = SLOT_FIELDS[kind] .. slot
      end
    end
    call.lists[i] = list
  end
  for i = 1, call.member_count do
    local member = {id = take(), key = KEYS[7 + i], candidates = tonumber(take())}
    member.first = at + 1
    at = at + 2 * member.candidates
    call.members[i] = member
  end
  if parse_more then
    at = parse_more(call, at)
  end
  if at < #ARGV then
    parse_conditions(call, at)
  end
  return call
end

local function host_of(call, number)
  local host = call.hosts[number]
  if not host then
    local first = 7 + call.member_count + 3 * (number - 1)
    host = {name = ARGV[20 + number], slots = {}, seen = {}, placed = 0,
      keys = {host = KEYS[first + 1], claims = KEYS[first + 2], inbox = KEYS[first + 3]}}
    if call.objects then
      host.domains = {host = host.name}
      host.keys.attributes = call.attributes_at and KEYS[call.attributes_at + number]
      host.limit = call.limits[number]
    end
    call.hosts[number] = host
  end
  return host
end
