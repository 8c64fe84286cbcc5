-- rs_refuses: why a host would refuse these amounts now. Its first line has the cause that claim.lua would answer.
-- include: closed_because
-- include: fit
-- include: people
-- include: register
-- include: slots
local OPTIONS = {reservation = true, max_runtime_s = true, max_claims = true, max_starting = true}

-- Return the amounts in order, and the options by name.
local function wanted_of(arguments)
  local amounts, options = {}, {reservation = ''}
  for number = 2, #arguments do
    local name, value = string.match(arguments[number], '^([^=]+)=(.*)$')
    local amount = value and string.find(value, '^%d+$') and tonumber(value)
    if not name or not (name == 'reservation' or amount) then
      refuse(arguments[number] .. ' is no amount: write CLASS=WHOLE_NUMBER, such as VCPU=4')
    elseif OPTIONS[name] then
      options[name] = amount or value
    elseif string.find(name, '^pool:') then
      refuse(name .. " is of a shared pool, not of a host: HGETALL 'rs:{c1}:pool:NAME'")
    elseif amounts[name] then
      refuse(name .. ' is given twice: give the whole amount once')
    else
      amounts[name], amounts[#amounts + 1] = true, {slot = name, amount = amount}
    end
  end
  return amounts, options
end

-- Return whether what the host keeps counts, as claim.lua decides it.
local function is_kept(cell, hash, options)
  local is_over_by = options.max_runtime_s and cell.now_ms + options.max_runtime_s * 1000
  return hash.reservation and hash.reservation ~= options.reservation
    and not (is_over_by and is_over_by <= to_int(hash.reservation_from_ms, 0, 0))
end

local function limits_of(hash, slot, keeps)
  local function field(kind, absent, unreadable)
    return to_int(hash[kind .. '.' .. slot], absent, unreadable)
  end
  return {
    capacity = field('capacity', 0, 0), claimed = field('claimed', 0, MOST), external = field('external', 0, MOST),
    min = field('min', 1, MOST), max = field('max', MOST, 0), step = field('step', 1, MOST),
    kept = keeps and field('kept', 0, MOST) or 0,
  }
end

-- Return why an amount does not fit a slot.
local function misfit(amount, of)
  if not (of.min <= amount) then
    return string.format('%.0f is below the smallest amount, %.0f', amount, of.min)
  elseif not (amount <= of.max) then
    return string.format('%.0f is above the largest amount, %.0f', amount, of.max)
  elseif amount % of.step ~= 0 then
    return string.format('%.0f is no multiple of %.0f', amount, of.step)
  end
  return string.format('%.0f wanted, %.0f free: capacity %.0f, claimed %.0f, external %.0f, kept %.0f', amount,
    math.max(0, of.capacity - of.claimed - of.external - of.kept), of.capacity, of.claimed, of.external, of.kept)
end

-- Return the slots of the same class in pools, for a person who has named the class.
local function elsewhere(hash, slots, slot)
  local others = {}
  for _, other in ipairs(slots) do
    if other ~= slot and class_of(other) == slot then
      others[#others + 1] = string.format('%s free %.0f', other, slot_of(hash, other).free)
    end
  end
  return #others > 0 and '; it has ' .. table.concat(others, ', ') or ''
end

local function closed_text(cell, hash, state)
  if state == 'UNKNOWN' then
    return 'no such host, or its version is damaged; rs_hosts lists hosts'
  elseif state == 'NOT_ATTESTED' then
    return hash.epoch == 'lost' and 'it was written off' or 'it has not attested to epoch ' .. cell.epoch
  elseif state == 'DOWN' then
    return 'its lease ' .. ends(cell, hash.alive_until_ms)
  end
  return 'an operator has set its status to ' .. (hash.status or '?')
end

-- Return the causes in the order in which claim.lua meets them, each with its text.
local function causes_of(cell, hash, slots, amounts, options)
  local causes, state, keeps = {}, state_of(cell, hash), is_kept(cell, hash, options)
  local function add(cause, text)
    causes[#causes + 1] = {name = cause, text = text}
  end
  if state ~= 'OPEN' then
    add(state, closed_text(cell, hash, state))
  end
  for _, wanted in ipairs(state ~= 'UNKNOWN' and amounts or {}) do
    local of = limits_of(hash, wanted.slot, keeps)
    local counted = {capacity = of.capacity, claimed = of.claimed, external = of.external + of.kept, min = of.min,
      max = of.max, step = of.step}
    if not fits(wanted.amount, counted) then
      add(wanted.slot, misfit(wanted.amount, of) .. elsewhere(hash, slots, wanted.slot))
    end
  end
  local claims, starting = to_int(hash.claims, 0, MOST), to_int(hash.starting, 0, MOST)
  if not (claims < (options.max_claims or MOST) and starting < (options.max_starting or MOST)) and state ~= 'UNKNOWN'
    and (options.max_claims or options.max_starting) then
    add('LIMIT', string.format('it has %.0f claims, %.0f of them not active', claims, starting))
  end
  return causes
end

register('rs_refuses', ' HOST CLASS=AMOUNT ...', 2, 'Why would a host refuse these amounts now?',
  function(cell, arguments, say)
    local amounts, options = wanted_of(arguments)
    local hash, slots = read_host(cell.prefix .. 'host:' .. arguments[1])
    local causes = causes_of(cell, hash, slots, amounts, options)
    say('%s %s', arguments[1], #causes > 0 and 'refuses: ' .. causes[1].name or 'takes it')
    for _, cause in ipairs(causes) do
      say('%s: %s', cause.name, cause.text)
    end
    if #causes == 0 and not cell.settled then
      say('the cell is settling: an id that a caller has chosen has to wait')
    end
  end)
