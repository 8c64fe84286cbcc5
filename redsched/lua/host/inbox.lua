#!lua flags=no-writes
-- inbox: read the notifications for the agents of some hosts. Agents read them over the connection that carries their
-- reports, so that an agent never acts on the notifications of one server and reports the result to another.
-- KEYS ...
--   the inbox of each host
-- ARGV after
--   after  the id of the entry after which to read
-- Reply OK, then for each host the XRANGE of its later entries
local reply = {'OK'}
for i = 1, #KEYS do
  reply[i + 1] = redis.call('XRANGE', KEYS[i], '(' .. ARG.after, '+')
end
return reply
