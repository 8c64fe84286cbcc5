-- take_over(): a claim that the store has on another host was placed on this one later, and that placing was lost. It
-- leaves the other host, whose agent is asked to stop its work. `more` entries of the feed follow.
-- include: change_host
-- include: fence
-- include: hint
-- include: host_without
-- include: whole
local function take_over(cell, entry, more)
  local keys, former = entry.rival, entry.stored
  local inbox = whole(redis.call('HGET', keys.host, 'inbox'), 0, 0) + 1
  change_host(cell, keys.host, former.host, 'moved', more, entry.id, host_without(keys.host, former))
  redis.call('HSET', keys.host, 'inbox', text(inbox))
  redis.call('SREM', keys.claims, entry.id)
  hint(cell, keys.inbox, inbox, 'end', entry.id, former.token)
end
