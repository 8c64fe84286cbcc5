#!lua flags=no-writes
-- audit: a host and the claims on it, read at one instant: only so can their sums be compared while work goes on.
-- KEYS  1 host, 2 claims, then the claim of each id; ARGV the ids
-- Reply OK or RETRY (KEYS[2] holds an id that is not in ARGV); then HGETALL of the host, the ids in KEYS[2], and
-- HGETALL of each claim in the order of ARGV
local named, claims = {}, {}
for i = 1, #ARGV do
  named[ARGV[i]] = true
  claims[i] = redis.call('HGETALL', KEYS[2 + i])
end
local ids = redis.call('SMEMBERS', KEYS[2])
for _, id in ipairs(ids) do
  if not named[id] then
    return {'RETRY'}
  end
end
return {'OK', redis.call('HGETALL', KEYS[1]), ids, claims}
