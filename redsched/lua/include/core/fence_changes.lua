-- note_changes(): the part of the fence that few calls reach: start an epoch if the store may have lost data, else note
-- the time, a new replication id, or that the cell has settled. `meta`: the fields that the fence has read.
-- include: mint

-- Return whether each lease that ran when the time was last noted will run for at least as long again as has passed
-- since. Then no lease has expired, and a lease that is renewed in its first half is renewed in time, whatever the
-- cause of the gap: no writes, a server that stood still, or a clock that was set.
local function leases_outlast(deadlines, noted_ms, now_ms)
  local from, to = '(' .. text(noted_ms), text(2 * now_ms - noted_ms)
  for _, leases in ipairs({KEYS[3], deadlines}) do
    if #redis.call('ZRANGE', leases, from, to, 'BYSCORE', 'LIMIT', 0, 1) > 0 then
      return false
    end
  end
  return true
end

-- Return whether a new replication id means no change of data: the first replica has connected to this same process, or
-- the last one has left.
local function is_same_data(replication)
  return redis.call('HGET', KEYS[1], 'run_id') == run_id()
    and not string.find(id_after(replication, 'master_replid2:'), '[^0]')
end

local function note_changes(cell, meta, replication, passed_ms, jump_ms, deadlines)
  local replid = id_after(replication, 'master_replid:')
  local jumped_ms = (passed_ms > jump_ms or passed_ms < -1000) and passed_ms or nil
  if not meta[1] then
    mint(cell, replid, true)
    redis.call('HSET', KEYS[1], 'schema', text(SCHEMA))
    return
  end
  if replid ~= meta[4] then
    if not is_same_data(replication) then
      return mint(cell, replid, false, jumped_ms)
    end
    redis.call('HSET', KEYS[1], 'replid', replid)
  end
  -- A cell that waits for its hosts to attest must give them their full time.
  local harmless = deadlines and cell.settled and passed_ms > jump_ms
    and leases_outlast(deadlines, tonumber(meta[3]), cell.now_ms)
  if jumped_ms and not harmless then
    return mint(cell, replid, false, jumped_ms)
  end
  if passed_ms >= 500 then
    redis.call('HSET', KEYS[1], 'now_ms', text(cell.now_ms))
  end
  if not cell.settled and cell.now_ms >= tonumber(redis.call('HGET', KEYS[1], 'settle_at_ms')) then
    cell.settled = true
    redis.call('HSET', KEYS[1], 'settled', '1')
  end
end
