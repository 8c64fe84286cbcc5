-- clock_shift(): return by how much the cell's clock has jumped since the cell began (ms). Times to come that were
-- written before a jump are of another clock: `clock_shift_ms` beside them says of which. What reads or writes them
-- while the host has attested first moves them to the present clock, by shift_times(). So a deadline is as far away
-- after a jump as before, and nothing ends because a clock was set, or because the clock of a promoted replica differs.
-- include: text
local function clock_shift()
  return tonumber(redis.call('HGET', KEYS[1], 'clock_shift_ms') or '0')
end

-- Move times in `fields` to the present clock, and return whether any has changed.
local function shift_times(fields, names)
  local shift_ms, shifted = clock_shift(), false
  local by_ms = shift_ms - (tonumber(fields.clock_shift_ms or '0') or 0)
  for _, name in ipairs(names) do
    local at_ms = tonumber(fields[name])
    if at_ms and at_ms > 0 and by_ms ~= 0 then
      fields[name], shifted = text(math.max(1, at_ms + by_ms)), true
    end
  end
  fields.clock_shift_ms = shift_ms ~= 0 and text(shift_ms) or nil
  return shifted
end
