-- rs_claims: the claims on a host.
-- include: claims_on
-- include: people
register('rs_claims', ' HOST [CURSOR]', 1, 'The claims on a host, with their age and amounts.',
  function(cell, arguments, say)
    local count = 0
    local rest = each_placement(cell, arguments[1], arguments[2], function(id, claim, prefix)
      count = count + 1
      say('%-14s %-8s %s', id, claim[prefix .. 'state'] or '?', pairs_text(amounts_of(claim, prefix)))
      say('    project %s, consumer %s, made %s', named(claim.project), named(claim.consumer),
        moment(cell, claim.claimed_at_ms))
    end)
    say('claims on %s: %d', arguments[1], count)
    if rest then
      say_next(cell, say, arguments[1], rest)
    end
  end)
