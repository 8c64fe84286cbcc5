-- parse_conditions(): parse what a call of claim.lua requests besides hosts and their amounts. Absent in most calls.
--
-- ARGV  attributes (1: KEYS has the attributes of each host, for labels), number of groups and pools;
--       number of shared amounts, amount list, object, resource class, amount of each;
--       number of members that count in a group, member, object of each;
--       number of limits, host, most claims, most starting of each ('' for any number);
--       number of rules, and each as kind, by, object (0: no group), most, members, member ..., domains, domain ...;
--       number of hosts that were written off, host number of each: see claim_left.lua
-- An amount list with shared amounts gets `shared`, a member `group` and `rules`; `limits` are by number of the host.
-- include: object_at
local function parse_conditions(call, at)
  local objects = {}
  local key_at = call.hosts_after + 3 * ARG.hosts
  local function take()
    at = at + 1
    return ARGV[at]
  end
  local function take_number()
    return tonumber(take())
  end
  if take() == '1' then
    call.attributes_at = key_at
    key_at = key_at + ARG.hosts
  end
  for number = 1, take_number() do
    objects[number] = object_at(KEYS[key_at + number])
  end
  for _ = 1, take_number() do
    local list, object, class, amount = call.lists[take_number()], objects[take_number()], take(), take_number()
    list.shared = list.shared or {}
    local slot = object.name .. '/' .. class
    list.shared[#list.shared + 1] = {object = object, class = class, amount = amount, slot = slot}
    object.slots = {}
    call.counts_all = true
  end
  for _ = 1, take_number() do
    local member = call.members[take_number()]
    member.group = objects[take_number()]
  end
  call.limits = {}
  for _ = 1, take_number() do
    call.limits[take_number()] = {claims = tonumber(take()), starting = tonumber(take())}
  end
  for _ = 1, take_number() do
    local rule = {kind = take(), by = take(), group = objects[take_number()], most = take_number(), domains = {}}
    rule.tally = rule.group or {hash = {}, was = {}, now = {}}
    call.counts_all = call.counts_all or rule.group or rule.kind == 'skew'
    if rule.kind == 'skew' then
      rule.tally.skews = rule.tally.skews or {}
      rule.tally.skews[#rule.tally.skews + 1] = rule
    end
    for _ = 1, take_number() do
      local member = call.members[take_number()]
      member.rules = member.rules or {}
      member.rules[#member.rules + 1] = rule
    end
    for i = 1, take_number() do
      rule.domains[i] = take()
    end
  end
  call.written_off = {}
  for i = 1, take_number() do
    call.written_off[i] = take_number()
  end
  call.objects = objects
end
