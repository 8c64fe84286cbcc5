-- The groups and shared pools of one call of claim.lua. unsuited(): read them, and return the reply to a call that
-- cannot be decided, or nil. append_objects(): append those that were written to the reply. add_conditions(): append
-- their fields to a claim.
-- include: fence
-- include: group_rule
-- include: read_hash
-- include: to_int

-- Read the slots of a pool; return nil for a pool without any, of which only the counts of claims are left.
local function read_pool(pool)
  local hash, declared = read_hash(pool.key), nil
  pool.hash = hash
  for field in pairs(hash) do
    local class = string.match(field, '^capacity%.(.+)$')
    if class then
      declared = true
      local function amount(kind, absent, unreadable)
        return to_int(hash[kind .. '.' .. class], absent, unreadable)
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
  for _, object in ipairs(call.objects) do
    if not (object.kind == 'pool' and read_pool or read_group)(object) then
      unknown[#unknown + 1] = object.name
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

local function append_objects(objects, reply)
  for _, object in ipairs(objects) do
    reply[#reply + 1] = object.kind
    reply[#reply + 1] = object.own_name
    reply[#reply + 1] = object.version
    reply[#reply + 1] = #object.fields
    for _, value in ipairs(object.fields) do
      reply[#reply + 1] = value
    end
  end
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
      put('counted.' .. topology, domain)
    end
  end
end
