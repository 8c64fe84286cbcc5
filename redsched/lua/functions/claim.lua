-- rs_claim: a claim, its placements and its last failure.
-- include: people
-- include: placements
-- include: read_hash
-- include: register
local function say_placement(cell, say, claim, prefix)
  local function field(name)
    return claim[prefix .. name]
  end
  say('%s on %s: %s', field('state') or '?', field('host') or '?', pairs_text(amounts_of(claim, prefix)))
  say('    token %s', field('token') or '?')
  if field('expires_at_ms') then
    say('    its lease %s', ends(cell, field('expires_at_ms')))
  end
  if field('end_reason') then
    say('    it ends because: %s', field('end_reason'))
  end
end

register('rs_claim', ' CLAIM', 1, 'A claim: where it is, and its last failure.', function(cell, arguments, say)
  local id = arguments[1]
  local claim, exists = read_hash(cell.prefix .. 'claim:' .. id)
  if not exists then
    refuse('there is no claim ' .. id .. ' in cell ' .. cell.name .. '; ended ones are remembered for 10 minutes')
  end
  say('%s: project %s, consumer %s, made %s', id, named(claim.project), named(claim.consumer),
    moment(cell, claim.claimed_at_ms))
  if claim.state == 'pending' or claim.state == 'ended' then
    say('it is %s: %s', claim.state, claim.retry_reason or claim.end_reason or claim.closed_reason or '?')
  end
  for _, prefix in ipairs(placements_of(claim)) do
    say_placement(cell, say, claim, prefix)
  end
  if claim.actor then
    say('made by %s', claim.actor)
  end
  if claim.group or claim.gang then
    say('server group %s, gang %s', claim.group or '-', claim.gang or '-')
  end
  local reason = redis.call('HMGET', cell.prefix .. 'reason:' .. id, 'at_ms', 'host', 'text')
  if reason[1] then
    say('last failure %s on %s: %s', moment(cell, reason[1]), reason[2] or '?', reason[3] or '?')
  end
end)
