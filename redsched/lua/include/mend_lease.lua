-- wrong_leases(): the claims of a host, as {id, key, claim}, whose deadline is not that of their lease: lost, another
-- one, or there although no lease runs. Each comes with `expires`, the deadline that it should have, or nil for none,
-- and with `deadline`, the one that it has. write_leases() puts that right. Uses KEYS 4 deadlines.
-- include: fence
-- include: in_chunks
-- include: leased
-- include: whole
local function wrong_leases(cell, held, lease_ms)
  local wrong = {}
  for _, entry in ipairs(held) do
    local expires = nil
    if LEASED[entry.claim.state] then
      expires = text(whole(entry.claim.expires_at_ms, cell.now_ms + lease_ms, cell.now_ms + lease_ms))
    end
    entry.deadline = redis.call('ZSCORE', KEYS[4], entry.id)
    if tonumber(entry.deadline or '-1') ~= tonumber(expires or '-1') or entry.claim.expires_at_ms ~= expires then
      entry.expires = expires
      wrong[#wrong + 1] = entry
    end
  end
  return wrong
end

-- Deadlines are removed last: one of them may be the last of its key.
local function write_leases(wrong)
  local over = {}
  for _, entry in ipairs(wrong) do
    if entry.expires then
      redis.call('ZADD', KEYS[4], entry.expires, entry.id)
      redis.call('HSET', entry.key, 'expires_at_ms', entry.expires)
    else
      over[#over + 1] = entry.deadline and entry.id or nil
      redis.call('HDEL', entry.key, 'expires_at_ms')
    end
  end
  in_chunks('ZREM', KEYS[4], over)
end
