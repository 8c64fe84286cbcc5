-- wrong_leases(): the claims of a host, as {id, key, claim}, whose deadline is not that of their lease: lost, another
-- one, or there although no lease runs. Each comes with `expires`, the deadline that it should have, or nil for none.
-- write_leases() puts that right. Uses KEYS 4 deadlines.
-- include: fence
-- include: leased
-- include: whole
local function wrong_leases(cell, held, lease_ms)
  local wrong = {}
  for _, entry in ipairs(held) do
    local expires = nil
    if LEASED[entry.claim.state] then
      expires = text(whole(entry.claim.expires_at_ms, cell.now_ms + lease_ms, cell.now_ms + lease_ms))
    end
    local deadline = redis.call('ZSCORE', KEYS[4], entry.id)
    if tonumber(deadline or '-1') ~= tonumber(expires or '-1') or entry.claim.expires_at_ms ~= expires then
      entry.expires = expires
      wrong[#wrong + 1] = entry
    end
  end
  return wrong
end

local function write_leases(wrong)
  for _, entry in ipairs(wrong) do
    if entry.expires then
      redis.call('ZADD', KEYS[4], entry.expires, entry.id)
      redis.call('HSET', entry.key, 'expires_at_ms', entry.expires)
    else
      redis.call('ZREM', KEYS[4], entry.id)
      redis.call('HDEL', entry.key, 'expires_at_ms')
    end
  end
end
