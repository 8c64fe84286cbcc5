-- mint(): start a new epoch. run_id(): the server process.
-- include: info
-- include: text
local function run_id()
  return id_after(redis.call('INFO', 'server'), 'run_id:')
end

-- `unattested` counts the known hosts that have yet to attest. It is -1 after a wipe, which has lost them: then only
-- time settles the cell. `jumped_ms`: by how much the clock has jumped; nil if it has not.
local function mint(cell, replid, wiped, jumped_ms)
  local settling = redis.call('HMGET', KEYS[1], 'settle_s', 'unattested', 'clock_shift_ms')
  -- A wiped cell that has not settled yet: a further epoch knows no more about its hosts.
  local by_time = wiped or (not cell.settled and settling[2] == '-1')
  local former_ms = tonumber(string.match(cell.epoch, '^%d+') or '0')
  cell.epoch = text(math.max(cell.now_ms, former_ms + 1)) .. '-' .. string.sub(replid, 1, 8)
  local unattested = by_time and -1 or redis.call('ZCARD', KEYS[3])
  cell.settled = unattested == 0
  redis.call('HSET', KEYS[1], 'epoch', cell.epoch, 'seq', cell.seq_text, 'now_ms', text(cell.now_ms),
    'replid', replid, 'run_id', run_id(), 'settled', cell.settled and '1' or '0',
    'settle_at_ms', text(cell.now_ms + tonumber(settling[1] or '60') * 1000), 'unattested', text(unattested),
    'began_ms', text(cell.now_ms))
  if jumped_ms then
    redis.call('HSET', KEYS[1], 'clock_shift_ms', text(tonumber(settling[3] or '0') + jumped_ms))
  end
end
