#!lua
-- quota_give: transfer an unused part of a cell's share of a quota to another cell. The share is reduced at once; the
-- transfer is recorded until quota_given reports its outcome. There is one transfer at a time for each receiving cell.
-- KEYS meta changes hosts quota
-- ARGV division to id ...
--      to: the receiving cell; id: of this call; then class, requested amount ...
-- Reply OK | ALREADY_DONE (this call has made the transfer) | IN_USE (another transfer to that cell is under way) |
--   FULL (nothing is unused) | STALE (this cell has no share of this division); epoch, now_ms; after OK, ALREADY_DONE
--   and IN_USE: id, number, at_ms, CLASS=amount ...
-- include: fence
-- include: quota_transfer
-- include: read_hash
-- include: to_int
local cell = fence()
local quota = read_hash(KEY.quota)
local field = 'given.' .. ARG.to
local function answer(outcome, record)
  local reply = {outcome, cell.epoch, cell.now_ms}
  for word in string.gmatch(record or '', '%S+') do
    reply[#reply + 1] = word
  end
  return reply
end
if not has_share(cell, quota, ARG.division) then
  return answer('STALE')
elseif quota[field] then
  return answer(string.match(quota[field], '^%S+') == ARG.id and 'ALREADY_DONE' or 'IN_USE', quota[field])
end
local number = text(to_int(quota['handed.' .. ARG.to], 0, 0) + 1)
local record, shares = ARG.id .. ' ' .. number .. ' ' .. text(cell.now_ms), {}
for i = 4, #ARGV, 2 do
  local class = ARGV[i]
  local share = to_int(quota['share.' .. class], 0, 0)
  local amount = math.min(tonumber(ARGV[i + 1]), share - to_int(quota['used.' .. class], 0, MOST))
  if amount > 0 then
    record = record .. ' ' .. class .. '=' .. text(amount)
    shares[#shares + 1] = 'share.' .. class
    shares[#shares + 1] = text(share - amount)
  end
end
if #shares == 0 then
  return answer('FULL')
end
redis.call('HSET', KEY.quota, field, record, 'handed.' .. ARG.to, number, unpack(shares))
return answer('OK', record)
