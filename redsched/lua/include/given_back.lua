-- given_back(): what a host's claimed fields are without a claim: a flat list of field, new absolute value.
local function given_back(host_key, claim)
  local fields = {}
  for slot, amount in pairs(amounts_of(claim, 0)) do
    local claimed = whole(redis.call('HGET', host_key, 'claimed.' .. slot), 0, MOST)
    fields[#fields + 1] = 'claimed.' .. slot
    fields[#fields + 1] = text(math.max(0, claimed - amount))
  end
  return fields
end
