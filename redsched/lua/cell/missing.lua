#!lua flags=allow-oom
-- missing: a scheduler reports, after a wipe, how many of the hosts that it remembers have yet to attest. The store
-- has forgotten its hosts; the cell settles before its time is up once no scheduler that remembers them misses one, and
-- LEAST_MS after the epoch was minted, so that every scheduler has had the time to report first.
-- KEYS meta changes hosts missing
-- ARGV epoch scheduler missing
-- Reply OK | ALREADY_DONE (the cell is settled, or it knows its hosts itself) | WRONG_EPOCH (another one has begun);
--   epoch, now_ms, settled (0 or 1)
-- include: fence
-- include: in_chunks
local LEAST_MS = 5000
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms, cell.settled and 1 or 0}
end
local waits = redis.call('HMGET', KEY.meta, 'unattested', 'settle_at_ms', 'began_ms')
if ARG.epoch ~= cell.epoch then
  return answer('WRONG_EPOCH')
elseif cell.settled or waits[1] ~= '-1' then
  return answer('ALREADY_DONE')
end
local former = redis.call('HGETALL', KEY.missing)
local most, fields, epochs, stale = tonumber(ARG.missing), {}, {}, {}
for i = 1, #former, 2 do
  fields[former[i]] = former[i + 1]
end
for field, value in pairs(fields) do
  local scheduler = string.match(field, '^epoch%.(.*)')
  if scheduler and scheduler ~= ARG.scheduler then
    epochs[scheduler] = value
  end
end
for scheduler, epoch in pairs(epochs) do
  if epoch == cell.epoch then
    most = math.max(most, tonumber(fields['missing.' .. scheduler]))
  else
    stale[#stale + 1] = 'epoch.' .. scheduler
    stale[#stale + 1] = 'missing.' .. scheduler
  end
end
cell.settled = most == 0 and cell.now_ms >= tonumber(waits[3] or string.match(cell.epoch, '^%d+')) + LEAST_MS
redis.call('HSET', KEY.meta, 'missing', text(most), 'settled', cell.settled and '1' or '0')
redis.call('HSET', KEY.missing, 'epoch.' .. ARG.scheduler, cell.epoch, 'missing.' .. ARG.scheduler, ARG.missing)
redis.call('PEXPIRE', KEY.missing, text(math.max(1, tonumber(waits[2]) - cell.now_ms)))
in_chunks('HDEL', KEY.missing, stale)
return answer('OK')
