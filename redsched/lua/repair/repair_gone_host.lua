#!lua flags=allow-oom
-- repair_gone_host: remove what is left of a host that no longer exists: its inbox, its attributes, and the placements
-- of claims there, which end as void. Work that the host had accepted may still run, so only an operator may end such a
-- placement.
-- KEYS meta changes hosts deadlines reconcile shelved host claims inbox attributes removed ...
-- ARGV host reason operator ...
-- Further keys: the claim of each id, then what they count in; passed.lua. operator: 1: end accepted placements too.
-- Then the ids in KEY.claims, and others that name the host.
-- Reply OK | ALREADY_DONE (the host exists, or nothing is left) | IN_USE (accepted placements are left) | SETTLING (the
--   host may return); epoch, now_ms
--   or RETRY (KEY.claims holds an id that is not in ARGV, or keys are missing, whose names follow)
-- include: commit
-- include: ids_on_host
-- include: remember_removed
-- include: remove_members
-- include: transitions
local cell = fence(KEY.deadlines)
local function answer(outcome, rest)
  return {outcome, cell.epoch, cell.now_ms, unpack(rest or {})}
end
if redis.call('EXISTS', KEY.host) == 1 then
  return answer('ALREADY_DONE')
elseif not cell.settled then
  return answer('SETTLING')
end
local named, claims, left = {}, {}, false
for i = 4, #ARGV do
  named[ARGV[i]] = true
  local claim = load_claim(KEYS[8 + i], ARGV[i])
  for _, placement in ipairs(in_order(claim)) do
    local ends = placement.state == 'claimed' or ARG.operator == '1'
    if placement.host == ARG.host and ends then
      free(claim, placement, 'void')
    end
    left = left or (placement.host == ARG.host and not ends)
  end
  claims[#claims + 1] = claim.freed and claim or nil
end
if not ids_on_host(named) then
  return answer('RETRY')
end
local objects = passed(9 + #ARGV)
leave_to_script(objects, KEY.host, ARG.host)
local lacking = prepare(claims, objects)
if #lacking > 0 then
  return answer('RETRY', lacking)
end
local leftovers = redis.call('EXISTS', KEY.inbox) + redis.call('EXISTS', KEY.attributes)
if not left then
  leftovers = leftovers + redis.call('EXISTS', KEY.claims)
end
if #claims + leftovers == 0 and not redis.call('ZSCORE', KEY.hosts, ARG.host) then
  return answer(left and 'IN_USE' or 'ALREADY_DONE')
end

-- Every check has passed. From here on, only writes.
local beside, ended = count_beside(claims, objects), {}
for number, claim in ipairs(claims) do
  ended[number] = claim.id
  publish(cell, 'host', ARG.host, cell.seq + 1, 'void', #claims - number + 1 + beside,
    {'claim', claim.id, 'reason', ARG.reason})
end
publish(cell, 'host', ARG.host, cell.seq + 1, 'removed', beside, {'reason', ARG.reason})
write_claims(cell, claims, objects, new_due(), {})
if ARG.operator == '1' then
  remember_removed(cell, KEY.removed)
end
redis.call('DEL', KEY.inbox, KEY.attributes)
redis.call('ZREM', KEY.hosts, ARG.host)
if left then
  remove_members('SREM', KEY.claims, ended)
else
  redis.call('DEL', KEY.claims)
end
finish(cell)
return answer(left and 'IN_USE' or 'OK')
