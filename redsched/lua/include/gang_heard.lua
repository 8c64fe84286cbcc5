-- What an attestation says of members of gangs: their work runs, does not run after all, or is being stopped. A host's
-- journal may be ahead of what the store has, or behind.
-- include: attest_merge
-- include: count_active
-- include: fence
-- include: gang
-- include: leased
-- include: whole
local function moves_in_gang(entry)
  return entry.was and entry.claim.gang and entry.was ~= state_of(entry)
end

-- hear_lost(): those that are to be waited for again. First of all, or a gang could come up by what is heard of others.
local function hear_lost(things, merged)
  for _, entry in ipairs(merged.kept) do
    if moves_in_gang(entry) and LEASED[state_of(entry)] and not LEASED[entry.was] then
      local gang = things['gang:' .. entry.claim.gang]
      local state = redis.call('HMGET', gang.key, 'waiting', 'member.' .. entry.id)
      if state[2] then
        redis.call('HSET', gang.key, 'waiting', text(whole(state[1], 0, 0) + 1))
      end
    end
  end
end

-- hear_members(): those that are ending, and those that are active. Before the claims are written.
local function hear_members(cell, things, merged)
  for _, entry in ipairs(merged.kept) do
    if moves_in_gang(entry) and entry.claim.state == 'ending' then
      entry.claim.state = entry.was
      leave_gang(cell, things, entry.claim, entry.id, entry.claim.why or 'released')
      entry.claim.state = 'ending'
    end
  end
  for _, entry in ipairs(merged.kept) do
    if moves_in_gang(entry) and LEASED[entry.was] and entry.claim.state == 'active' then
      count_active(things['gang:' .. entry.claim.gang])
    end
  end
end
