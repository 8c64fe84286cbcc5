-- finish_declared(): finish() for a script that changed what decisions use and claim.lua does not check: the hosts and
-- metadata of an aggregate, a pool's traits, a host's zone, traits, labels or pools. claim.lua then answers STALE_VIEW
-- to earlier decisions. A host's first reports do not count as such a change, because no decision can have used the
-- host.
-- include: fence
-- include: publish
local function finish_declared(cell)
  finish(cell)
  redis.call('HSET', KEYS[1], 'declared_seq', text(cell.seq))
end
