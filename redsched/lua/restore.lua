#!lua
-- restore: claims of an exported cell are put back as the store's word. Their hosts must not have attested to this
-- epoch: what such a one has said itself stands, and counts.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 shelved, 7 host, 8 claims, then the claim of each, then
--       groups, shared pools, gangs and quotas
-- ARGV  1 host, 2 lease_ms, 3 number of claims, then each as id, number of values, field, value ...
-- Reply OK | UNKNOWN (living claims, and no such host) | HELD (it has attested) | CONFLICT (an amount is no whole
--   number); epoch, now_ms, then the ids that the store had already, which stay as they are
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas whose keys are missing
-- include: counted_in
-- include: fence
-- include: in_chunks
-- include: leased
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: sums
-- include: things
-- include: whole
local cell = fence()
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
local host = read_hash(KEYS[7])
local count, at = tonumber(ARGV[3]), 3
local things, retry, done = passed_things(9 + count), answer('RETRY'), answer('OK')
local held, ended = {}, {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[8])) do
  held[#held + 1] = {id = id}
end
local before = #held
for number = 1, count do
  local entry, values = {id = ARGV[at + 1], key = KEYS[8 + number], claim = {}, first = at + 3}, tonumber(ARGV[at + 2])
  for i = at + 3, at + 2 + values, 2 do
    entry.claim[ARGV[i]] = ARGV[i + 1]
  end
  at = at + 2 + values
  entry.last = at
  if redis.call('EXISTS', entry.key) == 1 then
    done[#done + 1] = entry.id
  elseif entry.claim.state == 'ended' then
    ended[#ended + 1] = entry
  else
    held[#held + 1] = entry
    lacks(things, entry.claim, retry)
  end
end
if #held > before and not host.version then
  return answer('UNKNOWN')
elseif #held > before and host.epoch == cell.epoch then
  return answer('HELD')
elseif #retry > 3 then
  return retry
end
local fresh = {unpack(held, before + 1)}
local sums = sums_of(fresh)
if not sums then
  return answer('CONFLICT')
end
local told = {}
for field, sum in pairs(sums) do
  if sum > 0 then
    told[#told + 1] = field
    told[#told + 1] = text(math.min(MOST, whole(host[field], 0, 0) + sum))
  end
end
for _, entry in ipairs(fresh) do
  count_claim(things, entry.claim, 1)
end

-- Every check is passed. From here on, only writes.
local changed = changed_things(things)
if #fresh > 0 then
  local version = text(whole(host.version, cell.seq, cell.seq) + 1)
  publish(cell, 'host', ARGV[1], version, 'restored', #changed, told)
  redis.call('HSET', KEYS[7], 'version', version)
  in_chunks('HSET', KEYS[7], told)
  write_things(cell, changed, 'restored')
end
for _, entry in ipairs(fresh) do
  redis.call('HSET', entry.key, unpack(ARGV, entry.first, entry.last))
  redis.call('SADD', KEYS[8], entry.id)
  if LEASED[entry.claim.state] then
    local expires = text(cell.now_ms + tonumber(ARGV[2]))
    redis.call('HSET', entry.key, 'expires_at_ms', expires)
    redis.call('ZADD', KEYS[4], expires, entry.id)
  end
end
for _, entry in ipairs(ended) do
  redis.call('HSET', entry.key, unpack(ARGV, entry.first, entry.last))
end
for _, list in ipairs({fresh, ended}) do
  for _, entry in ipairs(list) do
    local claim = entry.claim
    if claim.why == 'shelved' then
      redis.call('SADD', KEYS[6], entry.id)
    end
    if claim.former or (claim.state == 'ended' and (claim.next or claim.origin)) then
      redis.call('ZADD', KEYS[5], text(cell.now_ms), entry.id)
    end
  end
end
finish(cell)
return done
