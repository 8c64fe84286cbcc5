#!lua flags=no-writes
-- inbox: the hints for the agents of some hosts. Read over the connection that carries their reports and confirms, so
-- that an agent never takes from one server what it then says to another.
-- KEYS  the inbox of each host
-- ARGV  1 id of the entry after which to read
-- Reply OK, then for each host XRANGE of what follows
local reply = {'OK'}
for i = 1, #KEYS do
  reply[i + 1] = redis.call('XRANGE', KEYS[i], '(' .. ARGV[1], '+')
end
return reply
