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
    local found, rest = page_after(cell.prefix .. 'deadlines', '+inf', arguments[1])
    for _, id in ipairs(found) do
      say_lease(cell, say, id)
    end
    say('claims with a lease: %d', #found)
    if rest then
      say_next(cell, say, rest)
    end
  end)
