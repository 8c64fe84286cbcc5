#!lua flags=no-writes
-- audit: read a host and its claims at one instant, so that its sums can be compared with its claims while other
-- scripts change both.
-- KEYS host claims ...
--   then the hash of each claim in ARGV
-- ARGV ...
--   the claim ids
-- Reply OK or RETRY (the set of claims holds an id that is not in ARGV); then HGETALL of the host, the ids in the set,
--   and HGETALL of each claim in the order of ARGV
-- include: ids_on_host
local named, claims = {}, {}
for i = 1, #ARGV do
  named[ARGV[i]] = true
  claims[i] = redis.call('HGETALL', KEYS[2 + i])
end
local ids = ids_on_host(named)
if not ids then
  return {'RETRY'}
end
return {'OK', redis.call('HGETALL', KEY.host), ids, claims}
