#!lua flags=allow-oom
-- forget: remove a host. Refused while it holds claims, unless forced: then their placements there end as void. Also
-- refused, unless forced, while its lease runs: its agent would report it again, as a new host that takes claims. One
-- that is forced out then, and takes none, joins again as disabled.
-- KEYS meta changes hosts deadlines reconcile shelved host claims inbox attributes draining removed expected ...
-- ARGV host force if_match ...
-- Further keys: the claim of each id, then what they count in; passed.lua. force: 0 or 1. if_match: if_match.lua. Then
-- the ids in KEY.claims.
-- Reply OK | UNKNOWN | IN_USE (it holds claims) | ALIVE (the rest of its lease in ms follows) | CHANGED (if_match names
--   another tag; the host's tag follows) | RETRY (KEY.claims holds an id that is not in ARGV, or keys are missing,
--   whose names follow); epoch, now_ms
-- include: commit
-- include: finish_declared
-- include: ids_on_host
-- include: if_match
-- include: operator_tag
-- include: remember_removed
-- include: settle
-- include: to_int
-- include: transitions
local cell = fence(KEY.deadlines)
local host, known = read_hash(KEY.host)
local function answer(outcome, rest)
  return {outcome, cell.epoch, cell.now_ms, unpack(rest or {})}
end
local lease_ms = to_int(host.alive_until_ms, 0, 0) - cell.now_ms
if not known then
  return answer(redis.call('HDEL', KEY.expected, ARG.host) == 1 and 'OK' or 'UNKNOWN')
elseif ARG.force ~= '1' and redis.call('EXISTS', KEY.claims) == 1 then
  return answer('IN_USE')
elseif ARG.force ~= '1' and lease_ms > 0 then
  return answer('ALIVE', {text(lease_ms)})
elseif not if_match(ARG.if_match, operator_tag(host)) then
  return answer('CHANGED', {operator_tag(host)})
end
local key_of, claims = {}, {}
for i = 4, #ARGV do
  key_of[ARGV[i]] = KEYS[10 + i]
end
local ids = ids_on_host(key_of)
if not ids then
  return answer('RETRY')
end
for _, id in ipairs(ids) do
  local claim = load_claim(key_of[id], id)
  for _, placement in ipairs(in_order(claim)) do
    if placement.host == ARG.host then
      free(claim, placement, placement.end_reason or 'void')
    end
  end
  claims[#claims + 1] = claim.freed and claim or nil
end
local objects = passed(11 + #ARGV)
leave_to_script(objects, KEY.host, ARG.host)
local lacking = prepare(claims, objects)
if #lacking > 0 then
  return answer('RETRY', lacking)
end
for _, claim in ipairs(claims) do
  judge_written_off(cell, claim, KEY.host)
end

-- Every check has passed. From here on, only writes.
publish(cell, 'host', ARG.host, text(tonumber(host.version) + 1), 'removed', count_beside(claims, objects), {})
write_claims(cell, claims, objects, new_due(), {})
count_attested(cell, host)
if ARG.force == '1' then
  remember_removed(cell, KEY.removed)
end
if lease_ms > 0 and host.status ~= 'enabled' then
  redis.call('HSET', KEY.expected, ARG.host, 'disabled ' .. (host.status_reason or ''))
end
finish_declared(cell) -- another host may be added under its name
redis.call('DEL', KEY.host, KEY.claims, KEY.inbox, KEY.attributes)
redis.call('ZREM', KEY.hosts, ARG.host)
redis.call('SREM', KEY.draining, ARG.host)
return answer('OK')
