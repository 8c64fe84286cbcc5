-- The writes of an attestation to its host. held_here(): the placements that it holds from now on, each to be accepted
-- again if the journal has lost it. host_fields(): their sums. write_notifications(): rewrite its inbox.
-- include: attest_merge
-- include: notify
-- include: in_chunks
-- include: put_fields
-- include: sums

-- A placement that the journal does not have becomes `claimed`, or `starting` if the journal itself is new: then the
-- work may run, and must not be freed as if it had never been started.
local function held_here(cell, merged, host, lease_ms)
  local held, former = {}, host['agent.journal'] or ''
  local state_of_lost = (former ~= '' and former ~= ARG.journal) and 'starting' or 'claimed'
  for _, claim in ipairs(merged.claims) do
    for _, placement in pairs(claim.placements) do
      if placement.host == ARG.host then
        local lost = not merged.reported[placement.placed] and placement.state ~= 'ending'
        if lost and placement.state ~= 'claimed' then
          placement.state = state_of_lost
        end
        placement.expires_at_ms = LEASED[placement.state] and text(cell.now_ms + lease_ms) or nil
        placement.inbox_id, placement.notify = nil, 'none'
        held[#held + 1] = {claim = claim, placement = placement, lost = lost}
      end
    end
  end
  return held
end

-- Return the flat list of a host's fields with these placements, and the fields to delete: those of slots that the host
-- does not have and of which nothing is claimed any more. Returns nil if an amount is not a whole number.
local function host_fields(host, held)
  local sums, flat, gone = sums_of(held), {}, {}
  if not sums then
    return nil
  end
  for field in pairs(host) do
    if string.match(field, '^claimed%..') then
      sums[field] = sums[field] or 0
    end
  end
  for field, sum in pairs(sums) do
    local slot = string.match(field, '^claimed%.(.+)$')
    if slot and sum == 0 and not host['capacity.' .. slot] then
      gone[#gone + 1] = field
    elseif slot or (host[field] or '0') ~= text(sum) then
      flat[#flat + 1] = field
      flat[#flat + 1] = text(sum)
    end
  end
  return flat, gone
end

-- Notify the agent of its work: accept claimed placements, end those that are ending. The stream is emptied, and
-- deleted only if nothing is added to it.
local function write_notifications(cell, held, inbox)
  redis.call('XTRIM', KEY.inbox, 'MAXLEN', 0)
  local any = false
  for _, entry in ipairs(held) do
    local placement = entry.placement
    if placement.state == 'claimed' or placement.state == 'ending' or entry.lost then
      inbox, any = inbox + 1, true
      local op = placement.state == 'ending' and 'end' or 'claim'
      placement.inbox_id = notify(cell, KEY.inbox, inbox, op, entry.claim.id, placement.token)
    end
  end
  if not any then
    redis.call('DEL', KEY.inbox)
  end
  return inbox
end

-- Delete the notes on placements that the host was to drop, except those that its journal still has: another epoch may
-- begin before the host has received the reply. A host that was written off has returned, which ends its evacuation.
local function write_attested_host(host, drop, claimed, unclaimed)
  local dropping = {}
  for _, placed in ipairs(drop) do
    dropping['dropped.' .. placed] = true
  end
  for field in pairs(host) do
    if string.sub(field, 1, 8) == 'dropped.' and not dropping[field] then
      unclaimed[#unclaimed + 1] = field
    end
  end
  if shift_times(host, {'drain_deadline_ms'}) then
    put_fields(claimed, {'drain_deadline_ms', host.drain_deadline_ms, 'clock_shift_ms', host.clock_shift_ms or '0'}, {})
  end
  in_chunks('HSET', KEY.host, claimed)
  for i = 1, #claimed, 2 do
    host[claimed[i]] = claimed[i + 1]
  end
  in_chunks('HDEL', KEY.host, unclaimed)
  for _, field in ipairs(unclaimed) do
    host[field] = nil
  end
  if host.epoch == 'lost' then
    redis.call('HDEL', KEY.host, 'draining', 'drain_deadline_ms', 'drain_then')
    redis.call('SREM', KEY.draining, ARG.host)
  end
end
