#!lua
-- quota_close: begin a new division of a quota's limits over several cells. This cell admits no more usage until it
-- gets a share of that division, so that all shares in use at any time are of one division.
-- KEYS meta changes hosts quota
-- ARGV former division
-- Reply OK | ALREADY_DONE (this division has begun here) | STALE (the last division was not `former`, or this cell has
--   its share of the new one) | SETTLING (hosts may still restore claims) | UNKNOWN (the quota has no limits to share);
--   epoch, now_ms, then field, value ... of the quota
-- include: fence
-- include: in_chunks
-- include: quota_division
-- include: read_hash
local cell = fence()
local quota = read_hash(KEY.quota)
local function answer(outcome)
  local reply = {outcome, cell.epoch, cell.now_ms}
  for field, value in pairs(quota) do
    reply[#reply + 1] = field
    reply[#reply + 1] = value
  end
  return reply
end
if not quota.cells then
  return answer('UNKNOWN')
elseif not cell.settled then
  return answer('SETTLING')
elseif quota.division == ARG.division then
  return answer(quota.share_epoch and 'STALE' or 'ALREADY_DONE')
elseif (quota.division or '') ~= ARG.former then
  return answer('STALE')
end
local gone = {}
for field in pairs(quota) do
  if is_of_division(field) then
    gone[#gone + 1] = field
  end
end
in_chunks('HDEL', KEY.quota, gone)
redis.call('HSET', KEY.quota, 'division', ARG.division, 'closed_at_ms', text(cell.now_ms))
return answer('OK')
