#!lua
-- workload: add what requests asked for, and return the sums. The sums change in steps, so that all schedulers weigh by
-- the same ones for a while: counts are collected in fields `new.*`, and added once there are `step` requests. Beyond
-- `most` requests all sums are halved, so that earlier requests count less and less.
-- KEYS meta changes hosts workload
-- ARGV step most requests ...
--   then the fields of these requests, each with its count
-- Reply OK; epoch, now_ms, then the fields of the sums, each with its value
-- include: fence
local cell = fence()

local function merged(counts)
  local sums = {}
  for field, count in pairs(counts) do
    local name = string.match(field, '^new%.(.*)') or field
    sums[name] = (sums[name] or 0) + count
  end
  local parts = sums.requests > tonumber(ARG.most) and 2 or 1
  for field, sum in pairs(sums) do
    sum = math.floor(sum / parts)
    sums[field] = sum > 0 and sum or nil
  end
  return sums
end

local fields, former, counts = redis.call('HGETALL', KEY.workload), {}, {}
for i = 1, #fields, 2 do
  former[fields[i]] = fields[i + 1]
  counts[fields[i]] = tonumber(fields[i + 1])
end
counts['new.requests'] = (counts['new.requests'] or 0) + ARG.requests
for i = 4, #ARGV, 2 do
  local field = 'new.' .. ARGV[i]
  counts[field] = (counts[field] or 0) + ARGV[i + 1]
end
if counts['new.requests'] >= tonumber(ARG.step) then
  counts = merged(counts)
end
local reply = {'OK', cell.epoch, cell.now_ms}
for field, count in pairs(counts) do
  redis.call('HSET', KEY.workload, field, text(count))
  if string.sub(field, 1, 4) ~= 'new.' then
    reply[#reply + 1] = field
    reply[#reply + 1] = text(count)
  end
end
-- Last, because a script touches no key that it may have removed.
for field in pairs(former) do
  if not counts[field] then
    redis.call('HDEL', KEY.workload, field)
  end
end
return reply
