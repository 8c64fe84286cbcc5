#!lua
-- quota_share: give a cell its share of a division, once, if nothing has changed since it was closed for that division.
-- KEYS meta changes hosts quota
-- ARGV division epoch version ...
--      epoch: that of this cell before any cell was closed for the division: in a later epoch the cell may have lost
--      another division, of which other cells have shares; version: from the reply of quota_close; then class, share of
--      each limit
-- Reply OK | ALREADY_DONE (it has a share of this division) | STALE (another division, epoch or declaration); epoch,
--   now_ms
-- include: fence
-- include: in_chunks
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local quota = redis.call('HMGET', KEY.quota, 'division', 'version', 'share_epoch')
if quota[1] ~= ARG.division or quota[2] ~= ARG.version or cell.epoch ~= ARG.epoch then
  return answer('STALE')
elseif quota[3] then
  return answer('ALREADY_DONE')
end
local fields = {'share_epoch', cell.epoch}
for i = 4, #ARGV, 2 do
  fields[#fields + 1] = 'share.' .. ARGV[i]
  fields[#fields + 1] = ARGV[i + 1]
end
in_chunks('HSET', KEY.quota, fields)
return answer('OK')
