-- end_claim(): end a claim and give its amounts back.
-- `external` is a flat list of fields that the host measured anew and that change together with it.
local function end_claim(cell, keys, claim, id, why, external)
  local host_fields, host = given_back(keys.host, claim), redis.call('HMGET', keys.host, 'version')
  local version = whole(host[1], cell.seq, cell.seq) + 1
  for i = 1, #external do
    host_fields[#host_fields + 1] = external[i]
  end
  publish(cell, 'host', claim.host, version, why, 0, {'claim', id, unpack(host_fields)})
  redis.call('HSET', keys.host, 'version', text(version), unpack(host_fields))
  redis.call('SREM', keys.claims, id)
  bury(cell, keys.claim, id, claim, why)
  take_hint(keys.inbox, claim.inbox_id)
end
