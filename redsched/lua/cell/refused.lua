#!lua flags=allow-oom
-- refused: record that the API has refused to start an epoch above one that a host has seen, for people who ask for the
-- cell's status. Notes on epochs that the present one is above are removed.
-- KEYS meta changes hosts refused
-- ARGV host epoch most kept_ms
--   most     the most hosts that are noted
--   kept_ms  how long the notes are kept if no host is refused again
-- Reply OK | ALREADY_DONE (the present epoch is above it); epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: text
local cell = fence()
local function is_above(epoch)
  return tonumber(string.match(cell.epoch, '^%d+')) > tonumber(string.match(epoch, '^%d+'))
end
local noted, hosts, stale = redis.call('HGETALL', KEY.refused), 0, {}
for i = 1, #noted, 2 do
  if is_above(noted[i + 1]) then
    stale[#stale + 1] = noted[i]
  elseif noted[i] ~= ARG.host then
    hosts = hosts + 1
  end
end
local is_over = is_above(ARG.epoch)
if not is_over and hosts < tonumber(ARG.most) then
  redis.call('HSET', KEY.refused, ARG.host, ARG.epoch)
  redis.call('PEXPIRE', KEY.refused, ARG.kept_ms)
end
-- Last, because a script touches no key that it may have removed.
in_chunks('HDEL', KEY.refused, stale)
return {is_over and 'ALREADY_DONE' or 'OK', cell.epoch, cell.now_ms}
