-- end_claim(): end a claim and give its amounts back, on its host and wherever else it counts (`things`, all passed).
-- `also` is a flat list of further fields of the host that change together with it.
-- include: change_host
-- include: counted_in
-- include: gang
-- include: host_without
-- include: take_hint
-- include: things
-- include: tombstone
local function end_claim(cell, keys, claim, id, why, also, things)
  local fields = host_without(keys.host, claim)
  for i = 1, #also do
    fields[#fields + 1] = also[i]
  end
  count_claim(things, claim, -1)
  local changed = changed_things(things)
  change_host(cell, keys.host, claim.host, why, #changed, id, fields)
  write_things(cell, changed, why)
  redis.call('SREM', keys.claims, id)
  leave_gang(cell, things, claim, id, why)
  bury(cell, keys.claim, id, claim, why)
  take_hint(keys.inbox, claim.inbox_id)
end
