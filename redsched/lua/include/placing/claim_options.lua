-- write_further_fields(): write the fields and the alternates of a new claim that not every claim has.
-- include: clock_shift
-- include: keep_text
-- include: runtime_deadline

-- Return the alternates to store with the claims of a call: hosts that none of its members got.
local function alternates_left(call)
  local chosen, left, most = {}, {}, tonumber(ARG.most_alternates)
  for _, member in ipairs(call.members) do
    chosen[member.host.name] = true
  end
  for name in string.gmatch(ARG.alternates, '%S+') do
    if not chosen[name] and #left < most then
      left[#left + 1] = name
    end
  end
  return left
end

-- Append the options that all claims of a call have.
local function add_call_options(cell, call, claim)
  local gang = ARG.gang == '1' and call.members[1].id or ''
  local deadline = ARG.max_runtime_s ~= '' and runtime_deadline(cell, ARG.max_runtime_s) or ''
  local shift_ms = deadline ~= '' and clock_shift() or 0
  for field, value in pairs({call_id = ARG.call_id, gang = gang, max_runtime_s = ARG.max_runtime_s,
      runtime_deadline_ms = deadline, clock_shift_ms = shift_ms ~= 0 and text(shift_ms) or ''}) do
    if value ~= '' then
      claim[#claim + 1], claim[#claim + 2] = field, value
    end
  end
end

local function write_further_fields(cell, call, member)
  local claim, alternates = {}, member.alternates_key and alternates_left(call) or {}
  add_call_options(cell, call, claim)
  if call.conditions then
    call.conditions.add_to_claim(claim, member)
  end
  if #alternates > 0 then
    claim[#claim + 1], claim[#claim + 2] = 'alternates', text(#alternates)
    keep_alternates(member.alternates_key, table.concat(alternates, ' '))
  end
  if #claim > 0 then
    redis.call('HSET', member.key, unpack(claim))
  end
  if member.reopened then
    redis.call('HDEL', member.key, 'end_reason', 'voided_at_ms', 'closed', 'closed_reason')
    redis.call('PERSIST', member.key)
  end
end
