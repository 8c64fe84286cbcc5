-- end_claim(): end a claim and give its amounts back.
-- `external` is a flat list of fields that the host measured anew and that change together with it.
local function end_claim(cell, keys, claim, id, why, external)
  local host_fields, host = {}, redis.call('HMGET', keys.host, 'version')
  local version = whole(host[1], cell.seq, cell.seq) + 1
  for slot, amount in pairs(amounts_of(claim, 0)) do
    local claimed = whole(redis.call('HGET', keys.host, 'claimed.' .. slot), 0, MOST)
    host_fields[#host_fields + 1] = 'claimed.' .. slot
    host_fields[#host_fields + 1] = text(math.max(0, claimed - amount))
  end
  for i = 1, #external do
    host_fields[#host_fields + 1] = external[i]
  end
  publish(cell, 'host', claim.host, version, why, 0, {'claim', id, unpack(host_fields)})
  redis.call('HSET', keys.host, 'version', text(version), unpack(host_fields))
  redis.call('SREM', keys.claims, id)
  bury(cell, keys.claim, id, claim, why)
  take_hint(keys.inbox, claim.inbox_id)
end
