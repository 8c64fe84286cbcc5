-- parse_call(): return ARGV and KEYS of claim.lua and replace.lua as tables; their headers describe the order.
-- `parse_more` parses what follows the members. host_of(): return one of the hosts of a call.
--
-- Hosts and candidates become tables only when they are used: mostly the first candidate fits, and tables for all of
-- them would cost a tenth of the whole claim.
-- include: conditions
-- include: object_at
local HOST_FIELDS = {'version', 'epoch', 'status', 'alive_until_ms', 'inbox', 'claims', 'starting'}

local function parse_call(parse_more)
  local call = {
    epoch = ARG.epoch, decided_at_ms = tonumber(ARG.now_ms), seen_seq = tonumber(ARG.seen_seq),
    fresh = ARG.fresh == '1', lease_ms = tonumber(ARG.lease_ms), digest = ARG.digest, project = ARG.project,
    consumer = ARG.consumer, limited = ARG.limited == '1', gang = ARG.gang == '1', call_id = ARG.call_id,
    max_attempts = ARG.max_attempts, on_exit = ARG.on_exit, most_alternates = ARG.most_alternates,
    alternates = ARG.alternates, gang_members = ARG.gang_members, member_count = tonumber(ARG.members),
    host_count = tonumber(ARG.hosts), quota = ARG.project ~= '' and object_at(KEY.quota) or nil,
    members = {}, hosts = {}, lists = {}, conditions = nil, others = nil,
  }
  local at = 20
  local function take()
    at = at + 1
    return ARGV[at]
  end
  for i = 1, tonumber(ARG.lists) do
    local list, fields = {}, {unpack(HOST_FIELDS)}
    for number = 1, tonumber(take()) do
      local slot, last = take(), 6 * number + 1
      local claimed = 'claimed.' .. slot
      list[number] = {slot = slot, amount = tonumber(take()), claimed = claimed}
      fields[last + 1], fields[last + 2], fields[last + 3] = 'capacity.' .. slot, claimed, 'external.' .. slot
      fields[last + 4], fields[last + 5], fields[last + 6] = 'min.' .. slot, 'max.' .. slot, 'step.' .. slot
    end
    list.fields = fields
    call.lists[i] = list
  end
  for i = 1, call.member_count do
    call.members[i] = {id = take(), key = KEYS[7 + i], candidates = take()}
  end
  if call.alternates ~= '' then
    local first = #KEYS - (ARG.request ~= '' and 1 or 0) - (call.gang and 1 or 0) - call.member_count
    for i, member in ipairs(call.members) do
      member.alternates_key = KEYS[first + i]
    end
  end
  if parse_more then
    at = parse_more(call, at)
  end
  if at < #ARGV then
    call.conditions = conditions()
    call.conditions.parse(call, at)
  end
  return call
end

local function host_of(call, number)
  local host = call.hosts[number]
  if not host then
    local first = 7 + call.member_count + 3 * (number - 1)
    local key = KEYS[first + 1]
    host = {name = string.match(key, '}:host:(.+)$'), slots = {}, seen = {}, placed = 0,
      keys = {host = key, claims = KEYS[first + 2], inbox = KEYS[first + 3]}}
    if call.conditions then
      host.domains = {host = host.name}
      host.keys.attributes = call.attributes_at and KEYS[call.attributes_at + number]
      host.limit = call.limits[number]
    end
    call.hosts[number] = host
  end
  return host
end
