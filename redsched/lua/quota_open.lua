#!lua
-- quota_open: begin to count a ledger anew from what the cells hold. Until the count is closed nothing is given.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims
-- ARGV  1 count: its name, 2 lease_ms: how long it may take, 3 number of cells; then cell, epoch of each; then token of
--       the declaration; then field, value ... of the limits
-- Reply OK | SAME (it has been counted in these epochs) | OTHER (another count runs); epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: quota_counted
-- include: quota_limits
-- include: read_hash
-- include: whole
-- A ledger that nobody uses is not looked at for long, so here time running ahead is no sign of anything.
local NO_JUMP_S = '9007199254740991'

local cell = fence()
local ledger = read_hash(KEYS[2])
local counted, last = is_counted(cell, ledger, 3)
if counted then
  return {'SAME', cell.epoch, cell.now_ms}
end
local runs = ledger.count and ledger.count ~= ARGV[1] and ledger.count_epoch == cell.epoch
if runs and whole(ledger.count_until_ms, 0, 0) > cell.now_ms then
  return {'OTHER', cell.epoch, cell.now_ms}
end
if ledger.count ~= ARGV[1] then
  local gone = {'counted_in'}
  for field in pairs(ledger) do
    if string.find(field, '^used%.') then
      gone[#gone + 1] = field
    end
  end
  in_chunks('HDEL', KEYS[2], gone)
  redis.call('HSET', KEYS[1], 'jump_s', NO_JUMP_S)
  redis.call('HSET', KEYS[2], 'count', ARGV[1], 'count_epoch', cell.epoch, 'count_until_ms',
    text(cell.now_ms + tonumber(ARGV[2])))
  set_limits(ledger, ARGV[last + 1], last + 2)
end
return {'OK', cell.epoch, cell.now_ms}
