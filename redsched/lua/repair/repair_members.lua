#!lua flags=allow-oom
-- repair_members: count the members of server groups on a host by the zone and the labels that it has, as a report
-- does that changes them. For claims that were counted before reports did that, or were changed by hand.
-- KEYS meta changes hosts host attributes claims ...
-- ARGV host reason
-- Further keys: the claims of the host, and their groups; passed.lua.
-- Reply OK (repaired) | ALREADY_DONE (all are counted so) | UNKNOWN | SETTLING (hosts may still restore claims); epoch,
--   now_ms; or RETRY, epoch, now_ms and the names of missing keys
-- include: fence
-- include: publish
-- include: read_hash
-- include: recount
-- include: with_rest
local cell = fence()
local function answer(outcome, rest)
  return with_rest({outcome, cell.epoch, cell.now_ms}, rest)
end
local host = redis.call('HMGET', KEY.host, 'zone', 'version')
if not host[2] then
  return answer('UNKNOWN')
elseif not cell.settled then
  return answer('SETTLING')
end
local now = setmetatable({zone = host[1]}, {__index = read_hash(KEY.attributes)})
local members = recount(cell, ARG.host, now, 7)
if members.lacking then
  return answer('RETRY', members.lacking)
elseif members.number == 0 then
  return answer('ALREADY_DONE')
end
local version = text(to_int(host[2], cell.seq, cell.seq) + 1)
publish(cell, 'host', ARG.host, version, 'repaired', members.number, {'reason', ARG.reason})
redis.call('HSET', KEY.host, 'version', version)
members.write()
finish(cell)
return answer('OK')
