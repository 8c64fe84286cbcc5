-- rs_leases: claims that are not active yet, in the order in which their leases end.
-- include: pages
-- include: people
-- include: placements
-- include: read_hash
local function say_lease(cell, say, id)
  local claim = read_hash(cell.prefix .. 'claim:' .. id)
  for _, prefix in ipairs(placements_of(claim)) do
    if claim[prefix .. 'expires_at_ms'] then
      say('%-14s %-8s on %s', id, claim[prefix .. 'state'] or '?', claim[prefix .. 'host'] or '?')
      say('    made %s, lease %s', moment(cell, claim.claimed_at_ms), ends(cell, claim[prefix .. 'expires_at_ms']))
    end
  end
end

register('rs_leases', ' [CURSOR]', 0, 'Claims that are not active, in the order in which their leases end.',
  function(cell, arguments, say)
    local from = page_from(arguments[1])
    local found = redis.call('ZRANGE', cell.prefix .. 'deadlines', from, from + PAGE)
    for number = 1, math.min(#found, PAGE) do
      say_lease(cell, say, found[number])
    end
    say('claims with a lease: %d', math.min(#found, PAGE))
    if #found > PAGE then
      say_next(cell, say, from + PAGE)
    end
  end)
