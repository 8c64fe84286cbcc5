-- rs_host: state, lease, counts and slots of a host.
-- include: people
-- include: register
-- include: slots
local function attested(cell, hash)
  if hash.epoch == cell.epoch then
    return 'it has attested'
  end
  return hash.epoch == 'lost' and 'it was WRITTEN OFF' or 'it has NOT attested to the epoch'
end

register('rs_host', ' HOST', 1, 'State, lease, counts and slots of a host.', function(cell, arguments, say)
  local name = arguments[1]
  local hash, slots, fields = read_host(cell.prefix .. 'host:' .. name)
  if fields == 0 then
    refuse('there is no host ' .. name .. ' in cell ' .. cell.name .. ': rs_hosts lists them')
  end
  say('%s: %s, zone %s, status %s', name, state_of(cell, hash), hash.zone or '?', hash.status or '?')
  say('its lease %s; %s', ends(cell, hash.alive_until_ms), attested(cell, hash))
  say('%s claims, %s of them not active, %s failures in a row', hash.claims or '0', hash.starting or '0',
    hash.failures or '0')
  if hash.draining then
    say('its claims are being placed elsewhere: %s', hash.draining)
  end
  if hash.reservation then
    say('reserved for %s, which ends %s', hash.reservation, moment(cell, hash.reservation_until_ms))
  end
  say('%-20s %9s %9s %9s %9s %9s', 'SLOT', 'FREE', 'CAPACITY', 'CLAIMED', 'EXTERNAL', 'KEPT')
  for _, slot in ipairs(slots) do
    local of = slot_of(hash, slot)
    say('%-20s %9.0f %9.0f %9.0f %9.0f %9.0f%s', slot, of.free, of.capacity, of.claimed, of.external, of.kept,
      hash['over.' .. slot] and ' OVER' or '')
  end
end)
