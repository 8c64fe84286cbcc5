-- fence(deadlines): the first step of every writing script: check that the store still has the data of the cell's
-- epoch.
--
-- A failover, a wipe or a jump of the clock shows in the server's replication id, in a missing `meta` or in TIME. The
-- script that detects it starts a new epoch here, before anything else: from then on no host counts as attested, so
-- nothing can be claimed, ended or expired on a replica that may have lost writes. Uses KEYS 1 meta, 2 changes, 3
-- hosts, which every script passes. With the key of the claims' deadlines, the fence can distinguish a cell in which
-- nobody has written for a while from one in which a jump of time ends leases; without it, every jump starts an epoch.
-- Returns the cell: epoch, now_ms, seq, declared_seq, settled (bool), remember_ms, keep_ms. Raises an error that begins
-- with SCHEMA if the cell has been upgraded beyond what this release can write.
local SCHEMA = 2 -- as in redsched/store/commands/schema.py

-- `%d` is exact for all numbers used here if a C long has 64 bits, and costs a third of `%.0f`.
local function text(number)
  return string.format('%d', number)
end

-- Return the 40 digits after a label of INFO. A plain find, because this runs in every script and a pattern costs as
-- much as INFO.
local function id_after(info, label)
  local _, last = string.find(info, label, 1, true)
  return string.sub(info, last + 1, last + 40)
end

local function run_id()
  return id_after(redis.call('INFO', 'server'), 'run_id:')
end

-- Start a new epoch. `unattested` counts the known hosts that have yet to attest. It is -1 after a wipe, which has lost
-- them: then only time settles the cell.
local function mint(cell, replid, wiped)
  local settling = redis.call('HMGET', KEYS[1], 'settle_s', 'unattested')
  -- A wiped cell that has not settled yet: a further epoch knows no more about its hosts.
  local by_time = wiped or (not cell.settled and settling[2] == '-1')
  local former_ms = tonumber(string.match(cell.epoch, '^%d+') or '0')
  cell.epoch = text(math.max(cell.now_ms, former_ms + 1)) .. '-' .. string.sub(replid, 1, 8)
  local unattested = by_time and -1 or redis.call('ZCARD', KEYS[3])
  cell.settled = unattested == 0
  redis.call('HSET', KEYS[1], 'epoch', cell.epoch, 'seq', text(cell.seq), 'now_ms', text(cell.now_ms),
    'replid', replid, 'run_id', run_id(), 'settled', cell.settled and '1' or '0',
    'settle_at_ms', text(cell.now_ms + tonumber(settling[1] or '60') * 1000), 'unattested', text(unattested))
  if wiped then
    redis.call('HSET', KEYS[1], 'schema', text(SCHEMA))
  end
end

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

local function fence(deadlines)
  local time = redis.call('TIME')
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'now_ms', 'replid', 'settled', 'declared_seq',
    'remember_s', 'keep_s', 'jump_s', 'oldest')
  if meta[10] and tonumber(meta[10]) > SCHEMA then
    error({err = 'SCHEMA writers of this cell are of schema ' .. meta[10] .. ' or later, this release of ' .. SCHEMA})
  end
  local cell = {
    now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000),
    epoch = meta[1] or '', seq = tonumber(meta[2] or '0'), settled = meta[5] == '1',
    declared_seq = tonumber(meta[6] or '0'), remember_ms = tonumber(meta[7] or '600') * 1000,
    keep_ms = tonumber(meta[8] or '60') * 1000,
  }
  local replication = redis.call('INFO', 'replication')
  local replid = id_after(replication, 'master_replid:')
  if not meta[1] then
    mint(cell, replid, true)
    return cell
  end
  if replid ~= meta[4] then
    -- The first replica has connected to this same process, or the last one has left: a new id, but no change of data.
    if redis.call('HGET', KEYS[1], 'run_id') ~= run_id()
        or string.find(id_after(replication, 'master_replid2:'), '[^0]') then
      mint(cell, replid, false)
      return cell
    end
    redis.call('HSET', KEYS[1], 'replid', replid)
  end
  local noted_ms = tonumber(meta[3])
  local passed_ms = cell.now_ms - noted_ms
  local jumped = passed_ms > tonumber(meta[9] or '15') * 1000
  -- A cell that waits for its hosts to attest must give them their full time.
  local harmless = jumped and deadlines and cell.settled and leases_outlast(deadlines, noted_ms, cell.now_ms)
  if (jumped and not harmless) or passed_ms < -1000 then
    mint(cell, replid, false)
    return cell
  end
  if passed_ms >= 500 then
    redis.call('HSET', KEYS[1], 'now_ms', text(cell.now_ms))
  end
  if not cell.settled and cell.now_ms >= tonumber(redis.call('HGET', KEYS[1], 'settle_at_ms')) then
    cell.settled = true
    redis.call('HSET', KEYS[1], 'settled', '1')
  end
  return cell
end
