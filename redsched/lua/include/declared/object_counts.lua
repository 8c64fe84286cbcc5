-- number_of(): return a count of a server group, shared pool or quota: as changed in memory, else from its `hash` if
-- that has been read, else from the store. An unreadable count is MOST, so that nothing more fits. add(): change a
-- count, in memory (`was`, `now`).
-- include: read_hash
-- include: to_int
local function number_of(object, field)
  local number = object.now[field]
  if not number then
    if object.kind == 'quota' and not object.hash then
      object.hash = read_hash(object.key)
    end
    local stored
    if object.hash then
      stored = object.hash[field]
    else
      stored = redis.call('HGET', object.key, field)
    end
    number = to_int(stored, 0, MOST)
    object.was[field], object.now[field] = number, number
  end
  return number
end

local function add(object, field, amount)
  local number = number_of(object, field) + amount
  object.now[field] = number < 0 and 0 or number > MOST and MOST or number
end
