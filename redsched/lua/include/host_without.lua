-- host_without(): what a host's fields are without a claim: a flat list of field, new absolute value.
-- include: amounts
-- include: fence
-- include: leased
-- include: whole
local function host_without(host_key, claim)
  local fields = {}
  local function less(field, amount)
    local held = whole(redis.call('HGET', host_key, field), 0, MOST)
    fields[#fields + 1] = field
    fields[#fields + 1] = text(math.max(0, held - amount))
  end
  for slot, amount in pairs((amounts_of(claim, 0))) do
    less('claimed.' .. slot, amount)
  end
  less('claims', 1)
  if LEASED[claim.state] then
    less('starting', 1)
  end
  return fields
end
