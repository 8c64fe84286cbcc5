-- parse_call(): return the parts of ARGV and KEYS that claim.lua and replace.lua have in number; their headers describe
-- the order. `parse_more` parses what follows the members. host_of(): return one of the hosts of a call.
--
-- Hosts and candidates become tables only when they are used: mostly the first candidate fits, and tables for all of
-- them would cost a tenth of the whole claim.
-- include: conditions
-- include: object_at

-- Parse an amount list, whose length is ARGV[at]. `fields`: what to read of a host, its state and then six fields of
-- each slot. `stored`: the fields of a claim with these amounts, after those that it carries.
local function parse_list(at, carried)
  local fields = {'version', 'epoch', 'status', 'alive_until_ms', 'inbox', 'claims', 'starting', 'reservation'}
  local list, stored, last = {fields = fields, stored = nil}, {unpack(carried)}, 8
  for i = 1, ARGV[at] do
    local slot, amount = ARGV[at + 2 * i - 1], ARGV[at + 2 * i]
    list[i] = {slot = slot, amount = amount + 0}
    stored[#carried + 2 * i - 1], stored[#carried + 2 * i] = 'amount.' .. slot, amount
    fields[last + 1], fields[last + 2], fields[last + 3] = 'capacity.' .. slot, 'claimed.' .. slot, 'external.' .. slot
    fields[last + 4], fields[last + 5], fields[last + 6] = 'min.' .. slot, 'max.' .. slot, 'step.' .. slot
    last = last + 6
  end
  list.stored = stored
  return list
end

local function parse_call(parse_more)
  local call = {
    members = {}, hosts = {}, lists = {}, quota = ARG.project ~= '' and object_at(KEY.quota) or nil, conditions = nil,
    carried = nil, member_count = ARG.members + 0, hosts_after = 7 + ARG.members,
  }
  local fixed = 22
  local at = fixed + 2 * ARG.carried
  call.carried = {unpack(ARGV, fixed + 1, at)}
  for i = 1, ARG.lists do
    local list = parse_list(at + 1, call.carried)
    call.lists[i], at = list, at + 1 + 2 * #list
  end
  for i = 1, call.member_count do
    call.members[i] = {id = ARGV[at + 1], key = KEYS[7 + i], candidates = ARGV[at + 2], host = nil, decision = nil}
    at = at + 2
  end
  if ARG.alternates ~= '' then
    local first = #KEYS - (ARG.request ~= '' and 1 or 0) - (ARG.gang == '1' and 1 or 0) - call.member_count
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

-- `keys_after`: the position before the host's key, which those of its claims and inbox follow.
local function host_of(call, number)
  local host = call.hosts[number]
  if not host then
    local first = call.hosts_after + 3 * (number - 1)
    local key = KEYS[first + 1]
    host = {
      key = key, name = string.match(key, '}:host:(.+)$'), keys_after = first, slots = {}, placed = 0, version = nil,
      inbox = nil, claims = nil, starting = nil, closed = nil, cause = nil, changed = nil,
    }
    if call.conditions then
      host.domains = {host = host.name}
      host.attributes_key = call.attributes_at and KEYS[call.attributes_at + number]
      host.limit = call.limits[number]
    end
    call.hosts[number] = host
  end
  return host
end
