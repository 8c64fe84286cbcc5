-- each_placement(): look at the placements on a host, of at most 500 claims in a call: `look(id, claim, prefix)`.
-- Return the cursor of the rest, or nil.
-- include: pages
-- include: placements
-- include: read_hash
local function each_placement(cell, host, cursor, look)
  if redis.call('EXISTS', cell.prefix .. 'host:' .. host) == 0 then
    refuse('there is no host ' .. host .. ' in cell ' .. cell.name .. ': rs_hosts lists them')
  end
  return each_claim_on(cell, host, cursor, function(id)
    local claim = read_hash(cell.prefix .. 'claim:' .. id)
    for _, prefix in ipairs(placements_of(claim)) do
      if claim[prefix .. 'host'] == host and claim[prefix .. 'state'] ~= 'ended' then
        look(id, claim, prefix)
      end
    end
    return 30
  end)
end
