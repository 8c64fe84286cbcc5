#!lua
-- quota_given: record the outcome of a transfer: the other cell has received it, or has refused it for good.
-- KEYS meta changes hosts quota
-- ARGV division to number back
--      back: 1 if the other cell has refused it for good, so that its amounts return to this cell
-- Reply OK | ALREADY_DONE (no such transfer is under way) | STALE (this cell has no share of this division); epoch,
--   now_ms
-- include: fence
-- include: quota_transfer
-- include: read_hash
-- include: to_int
local cell = fence()
local quota = read_hash(KEY.quota)
local field = 'given.' .. ARG.to
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
if not has_share(cell, quota, ARG.division) then
  return answer('STALE')
elseif string.match(quota[field] or '', '^%S+ (%S+)') ~= ARG.number then
  return answer('ALREADY_DONE')
end
for class, amount in string.gmatch(ARG.back == '1' and quota[field] or '', '(%S+)=(%d+)') do
  local share = to_int(quota['share.' .. class], 0, 0) + tonumber(amount)
  redis.call('HSET', KEY.quota, 'share.' .. class, text(share))
end
redis.call('HDEL', KEY.quota, field)
return answer('OK')
