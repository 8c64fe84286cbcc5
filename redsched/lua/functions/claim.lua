-- rs_claim: a claim, its placements and its last failure.
-- include: people
-- include: placements
-- include: read_hash
-- include: register
-- Reasons in words, as redsched/model/decision_note.py has them.
local WORDS = {
  down = 'down', ['not-attested'] = 'not attested', disabled = 'disabled', draining = 'draining',
  zone = 'in other zones', hosts = 'not among those named', exclude_hosts = 'excluded',
  other = 'for other reasons',
}

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

-- Say how the host of a placement was chosen, if that is kept.
local function say_decision(cell, say, name, placed)
  local lines = {}
  for line in string.gmatch(redis.call('GET', cell.prefix .. 'decision:' .. name) or '', '[^\n]+') do
    lines[#lines + 1] = line
  end
  for token, candidate, number in string.gmatch(lines[1] or '', ' ([^ :]+):(%d+):(%d+)') do
    local line = lines[number + 1]
    local readable, kept = pcall(cjson.decode, line or '')
    if token == placed and readable then
      local left = {}
      for reason, hosts in pairs(kept.left_out) do
        local words = WORDS[reason] or (reason == string.upper(reason) and 'short of ' or 'by ') .. reason
        left[#left + 1] = hosts .. ' ' .. words
      end
      table.sort(left)
      say('chosen as candidate %s of %d hosts; left out: %s', candidate, kept.hosts,
        #left > 0 and table.concat(left, ', ') or 'none')
      for _, one in ipairs(kept.ranked) do
        say('    %s score %s', one[1], one[2])
      end
    end
  end
end

register('rs_claim', ' CLAIM', 1, 'A claim: where it is and why, its last failure.', function(cell, arguments, say)
  local id = arguments[1]
  local claim, exists = read_hash(cell.prefix .. 'claim:' .. id)
  if not exists then
    local remember_s = redis.call('HGET', cell.prefix .. 'meta', 'remember_s') or 600
    refuse('there is no claim ' .. id .. ' in cell ' .. cell.name .. '; ended ones are remembered for '
      .. duration(remember_s * 1000))
  end
  say('%s: project %s, consumer %s, made %s', id, named(claim.project), named(claim.consumer),
    moment(cell, claim.claimed_at_ms))
  if claim.state == 'pending' or claim.state == 'ended' then
    say('it is %s: %s', claim.state, claim.retry_reason or claim.end_reason or claim.closed_reason or '?')
  end
  for _, prefix in ipairs(placements_of(claim)) do
    say_placement(cell, say, claim, prefix)
  end
  if claim.owner then
    say('owned by %s', claim.owner)
  end
  if claim.actor then
    say('made by %s', claim.actor)
  end
  if claim.group or claim.gang then
    say('server group %s, gang %s', claim.group or '-', claim.gang or '-')
  end
  say_decision(cell, say, claim.decision or claim.placed or claim.token, claim.placed or claim.token)
  local reason = read_hash(cell.prefix .. 'reason:' .. id)
  if reason.text then
    say('last failure %s on %s: %s', moment(cell, reason.at_ms), reason.host or '?', reason.text)
  end
  if reason.stop_text then
    say('not stopped %s on %s: %s', moment(cell, reason.stop_at_ms), reason.stop_host or '?', reason.stop_text)
  end
end)
