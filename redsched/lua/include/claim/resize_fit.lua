-- too_small(): return the first slot that refuses the new amount of a claim beside all other claims, and why, or nil.
--
-- `was` is what the claim holds. An amount that shrinks is checked only against the slot's min and step, and one that
-- stays the same is not checked: on a host that shrank, claims must be able to shrink too, step by step.
-- include: fit
-- include: to_int
local function slot_at(key, name, held)
  local values = redis.call('HMGET', key, 'capacity.' .. name, 'claimed.' .. name, 'external.' .. name, 'min.' .. name,
    'max.' .. name, 'step.' .. name, 'kept.' .. name)
  local kept = to_int(values[7], 0, MOST)
  return {capacity = to_int(values[1], 0, 0), claimed = to_int(values[2], 0, MOST) - held,
    external = to_int(values[3], 0, MOST) + kept, min = to_int(values[4], 1, MOST),
    max = to_int(values[5], MOST, 0), step = to_int(values[6], 1, MOST), kept = kept}
end

local function has_room(slot, amount, held)
  if amount < held then
    return fits(amount, {capacity = MOST, claimed = 0, external = 0, min = slot.min, max = MOST, step = slot.step})
  end
  return amount == held or fits(amount, slot)
end

-- Return which rule refuses an amount, and its value; for a lack of room '' and what the claim may have at most.
local function refusing(slot, amount, held)
  local left = slot.capacity - slot.claimed - slot.external
  if amount < slot.min then
    return 'min_unit', slot.min
  elseif amount > held and amount > slot.max and amount <= slot.capacity then
    return 'max_unit', slot.max
  elseif amount % slot.step ~= 0 and (amount < held or amount <= slot.capacity) then
    return 'step_size', slot.step
  elseif amount <= left + slot.kept then
    return 'kept', slot.kept
  end
  return '', math.max(0, math.min(left, slot.max))
end

-- Return the next smaller and the next larger amount that the claim can get or has; 0 for none.
local function next_amounts(slot, amount, held)
  local top = math.min(amount - 1, math.max(held, math.min(slot.max, slot.capacity - slot.claimed - slot.external)))
  local below = top - top % slot.step
  local above = math.max(slot.min, amount + 1)
  above = above + (-above) % slot.step
  below = (below > 0 and has_room(slot, below, held)) and below or (held < amount and held or 0)
  above = has_room(slot, above, held) and above or (held > amount and held or 0)
  return below, above
end

local function too_small(host_key, objects, was, now)
  for name, amount in pairs(now) do
    local held = was[name] or 0
    if amount ~= held then
      local pool, class = string.match(name, '^(pool:.+)/(.+)$')
      local slot = slot_at(pool and objects[pool].key or host_key, class or name, held)
      if not has_room(slot, amount, held) then
        local rule, value = refusing(slot, amount, held)
        local below, above = next_amounts(slot, amount, held)
        return name, {rule, text(value), text(below), text(above)}
      end
    end
  end
  return nil
end
