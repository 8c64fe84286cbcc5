-- take_over(): a claim that the store has on another host was placed on this one later, and that placing was lost. It
-- leaves the other host, whose agent is asked to stop its work. `more` entries of the feed follow.
local function take_over(cell, entry, more)
  local keys, former = entry.rival, entry.former
  local fields = given_back(keys.host, former)
  local state = redis.call('HMGET', keys.host, 'version', 'inbox')
  local version, inbox = whole(state[1], cell.seq, cell.seq) + 1, whole(state[2], 0, 0) + 1
  publish(cell, 'host', former.host, version, 'moved', more, {'claim', entry.id, unpack(fields)})
  redis.call('HSET', keys.host, 'version', text(version), 'inbox', text(inbox), unpack(fields))
  redis.call('SREM', keys.claims, entry.id)
  hint(cell, keys.inbox, inbox, 'end', entry.id, former.token)
end
