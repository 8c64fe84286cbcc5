-- too_small(): return the first slot without room for the new amount of a claim beside all other claims, or nil.
--
-- `was` is what the claim holds. An amount that shrinks is checked only against the slot's min and step, and one that
-- stays the same is not checked: on a host that shrank, claims must be able to shrink too, step by step.
-- include: fit
-- include: to_int
local function has_room(key, name, amount, held)
  local values = redis.call('HMGET', key, 'capacity.' .. name, 'claimed.' .. name, 'external.' .. name, 'min.' .. name,
    'max.' .. name, 'step.' .. name, 'kept.' .. name)
  local slot = {capacity = to_int(values[1], 0, 0), claimed = to_int(values[2], 0, MOST) - held,
    external = to_int(values[3], 0, MOST) + to_int(values[7], 0, MOST), min = to_int(values[4], 1, MOST),
    max = to_int(values[5], MOST, 0), step = to_int(values[6], 1, MOST)}
  if amount < held then
    slot.capacity, slot.claimed, slot.external, slot.max = MOST, 0, 0, MOST
  end
  return fits(amount, slot)
end

local function too_small(host_key, objects, was, now)
  for slot, amount in pairs(now) do
    local held = was[slot] or 0
    local pool, class = string.match(slot, '^(pool:.+)/(.+)$')
    if amount ~= held and not has_room(pool and objects[pool].key or host_key, class or slot, amount, held) then
      return slot
    end
  end
  return nil
end
