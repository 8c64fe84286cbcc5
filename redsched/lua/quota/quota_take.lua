#!lua
-- quota_take: receive what another cell has transferred, once; or refuse it for good (void), so that the giving cell
-- can take it back. The transfers of a cell are numbered and made one after the other: a number below the last one was
-- handled before.
-- KEYS meta changes hosts quota
-- ARGV division from number void ...
--      from: the giving cell; void: 1 or 0; then class, amount ...
-- Reply OK (received; of a void: it was not received, and never will be) | ALREADY_DONE (it was received before) |
--   ENDED (it was refused) | STALE (this cell has no share of this division); epoch, now_ms
-- include: fence
-- include: quota_transfer
-- include: read_hash
-- include: to_int
local cell = fence()
local quota = read_hash(KEY.quota)
local heard, taken, number = 'heard.' .. ARG.from, 'taken.' .. ARG.from, tonumber(ARG.number)
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not has_share(cell, quota, ARG.division) then
  return answer('STALE')
elseif to_int(quota[taken], 0, 0) == number then
  return answer('ALREADY_DONE')
elseif to_int(quota[heard], 0, MOST) >= number then
  return answer(ARG.void == '1' and 'OK' or 'ENDED')
end
local fields = {heard, ARG.number}
if ARG.void ~= '1' then
  fields = {heard, ARG.number, taken, ARG.number}
  for i = 5, #ARGV, 2 do
    fields[#fields + 1] = 'share.' .. ARGV[i]
    fields[#fields + 1] = text(to_int(quota['share.' .. ARGV[i]], 0, 0) + tonumber(ARGV[i + 1]))
  end
end
redis.call('HSET', KEY.quota, unpack(fields))
return answer('OK')
