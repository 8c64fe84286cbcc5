-- bury_ended(), keep(), write_attested_host(): what an attestation writes of claims, and of their host.
-- include: attest_merge
-- include: fence
-- include: gang
-- include: hint
-- include: in_chunks
-- include: mark_over
-- include: tombstone
local function bury_ended(cell, things, merged)
  for _, entry in ipairs(merged.ended) do
    -- A journal does not know why: it says nothing of whether the owner gave it up, or another has succeeded it.
    local why = entry.claim.why or 'void'
    redis.call('SREM', KEYS[7], entry.id)
    leave_gang(cell, things, entry.claim, entry.id, entry.claim.why or 'released')
    bury(cell, entry.key, entry.id, entry.claim, why)
  end
end

-- Write one kept claim with a fresh lease where one runs; hint at it where the agent has something to do.
local function keep(cell, entry, inbox, lease_ms)
  local claim, fields = entry.claim, {}
  claim.host, claim.inbox_id, claim.expires_at_ms = ARGV[1], nil, nil
  claim.claimed_at_ms = claim.claimed_at_ms or text(cell.now_ms)
  claim.state = state_of(entry)
  if claim.state == 'ending' then
    claim.why = claim.why or 'void' -- as in bury_ended()
  end
  local asked = entry.lost or claim.state == 'claimed' or claim.state == 'ending'
  if asked then
    inbox = inbox + 1
    claim.inbox_id = hint(cell, KEYS[8], inbox, claim.state == 'ending' and 'end' or 'claim', entry.id, claim.token)
  end
  redis.call('ZREM', KEYS[4], entry.id)
  if claim.state == 'claimed' or claim.state == 'starting' then
    claim.expires_at_ms = text(cell.now_ms + lease_ms)
    redis.call('ZADD', KEYS[4], claim.expires_at_ms, entry.id)
  end
  if claim.former and claim.state == 'active' then
    claim.arrived = '1'
  elseif entry.lost then
    claim.arrived = nil -- its work does not run after all
  end
  local restored = claim ~= entry.stored
  if claim.arrived or (restored and claim.origin) then
    redis.call('ZADD', KEYS[5], text(cell.now_ms), entry.id)
  end
  for field, value in pairs(claim) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  redis.call('DEL', entry.key)
  redis.call('HSET', entry.key, unpack(fields))
  redis.call('SADD', KEYS[7], entry.id)
  return inbox
end

-- Write the sums of claims on a host. Notes on what it was to drop go, but for those ids that its journal still has:
-- another epoch may begin before it has heard the answer. A host that was lost has come back.
local function write_attested_host(host, drop, claimed, unclaimed)
  local dropping = {}
  for _, id in ipairs(drop) do
    dropping['dropped.' .. id] = true
  end
  for field in pairs(host) do
    if string.sub(field, 1, 8) == 'dropped.' and not dropping[field] then
      unclaimed[#unclaimed + 1] = field
    end
  end
  in_chunks('HSET', KEYS[6], claimed)
  mark_over(KEYS[6])
  in_chunks('HDEL', KEYS[6], unclaimed)
  if host.epoch == 'lost' then
    redis.call('HDEL', KEYS[6], 'leaving')
    redis.call('SREM', KEYS[9], ARGV[1])
  end
end
