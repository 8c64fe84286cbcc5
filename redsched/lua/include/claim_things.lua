-- The groups and shared pools of one call of claim.lua: unsuited() reads them, and is the answer of a call that cannot
-- be judged, or nil. add_conditions(), tell_things(): what a claim and the reply say of them.

-- A group's hash, by what it counts beside the host (`topologies`) and its own hard policy as a rule; nil for one that
-- nobody has declared. A group of thousands has as many fields: each is looked at only when it is needed.
local function read_group(group)
  local flat, by, hash = redis.call('HGETALL', group.key), {zone = true}, {}
  for i = 1, #flat, 2 do
    local field = flat[i]
    hash[field] = flat[i + 1]
    if string.byte(field, 6) == 95 and string.sub(field, 1, 9) == 'count_by.' then -- 95: the underscore
      by[string.sub(field, 10)] = true
    end
  end
  local policy_by = hash.by or 'host'
  by[policy_by], group.hash = true, hash
  by.host = nil
  group.topologies = {}
  for topology in pairs(by) do
    group.topologies[#group.topologies + 1] = topology
  end
  if hash.policy == 'anti-affinity' then
    group.rule = {kind = 'apart', by = policy_by, tally = group, most = whole(hash.max_per_host, 1, 0)}
  elseif hash.policy == 'affinity' then
    group.rule = {kind = 'together', by = policy_by, tally = group}
  end
  return hash.policy
end

-- The slots of a pool; nil for one without any, which only claims have left there.
local function read_pool(pool)
  local hash, declared = read_hash(pool.key), nil
  pool.hash = hash
  for field in pairs(hash) do
    local class = string.match(field, '^capacity%.(.+)$')
    if class then
      declared = true
      local function amount(kind, absent, unreadable)
        return whole(hash[kind .. '.' .. class], absent, unreadable)
      end
      pool.slots[class] = {capacity = amount('capacity', 0, 0), claimed = amount('claimed', 0, MOST),
        external = amount('external', 0, MOST), min = amount('min', 1, MOST), max = amount('max', MOST, 0),
        step = amount('step', 1, MOST)}
    end
  end
  return declared
end

local function unsuited(cell, call)
  if call.counts_all and not cell.settled then
    return {'SETTLING', cell.epoch, cell.now_ms}
  end
  local unknown = {'UNKNOWN', cell.epoch, cell.now_ms}
  for _, thing in ipairs(call.things) do
    if not (thing.kind == 'pool' and read_pool or read_group)(thing) then
      unknown[#unknown + 1] = thing.name
    end
  end
  if #unknown > 3 then
    return unknown
  end
  for _, member in ipairs(call.members) do
    if member.group and member.group.rule and not cell.settled then
      return {'SETTLING', cell.epoch, cell.now_ms}
    end
  end
  return nil
end

local function add_conditions(claim, member)
  local function put(field, value)
    claim[#claim + 1] = field
    claim[#claim + 1] = value
  end
  for _, entry in ipairs(member.amounts.shared or {}) do
    put('amount.' .. entry.slot, text(entry.amount))
  end
  if member.group then
    put('group', member.group.own_name)
    for topology, domain in pairs(member.counted) do
      put('in.' .. topology, domain)
    end
  end
end

local function tell_things(things, reply)
  reply[#reply + 1] = #things
  for _, thing in ipairs(things) do
    reply[#reply + 1] = thing.kind
    reply[#reply + 1] = thing.own_name
    reply[#reply + 1] = thing.version
    reply[#reply + 1] = #thing.fields
    for _, value in ipairs(thing.fields) do
      reply[#reply + 1] = value
    end
  end
  return reply
end
