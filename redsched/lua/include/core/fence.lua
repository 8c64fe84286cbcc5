-- fence(deadlines): the first step of every writing script: check that the store still has the data of the cell's
-- epoch.
--
-- A failover, a wipe or a jump of the clock shows in the server's replication id, in a missing `meta` or in TIME. The
-- script that detects it starts a new epoch here, before anything else: from then on no host counts as attested, so
-- nothing can be claimed, ended or expired on a replica that may have lost writes. Uses KEYS 1 meta, 2 changes, 3
-- hosts, which every script passes. With the key of the claims' deadlines, the fence can distinguish a cell in which
-- nobody has written for a while from one in which a jump of time ends leases; without it, every jump starts an epoch.
-- Returns the cell: epoch, now_ms, seq and its text, declared_seq (text), settled (bool), remember_ms, origin. Raises
-- an error that begins with SCHEMA if the cell has been upgraded beyond what this release can write.
--
-- `origin` is the last argument of each script with a fence, which no header names: who caused this call, '' if that is
-- not known (origin.lua). It is removed here, so that no script counts it among its own arguments.
--
-- This runs in every script: text becomes a number by arithmetic, at less than half the cost of tonumber, and what few
-- calls need is in fence_changes.lua.
-- include: info
-- include: text
local SCHEMA = 2 -- as in redsched/store/commands/schema.py

local function note(...)
  -- include: fence_changes
  note_changes(...)
end

local function fence(deadlines)
  local time = redis.call('TIME')
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'now_ms', 'replid', 'settled', 'declared_seq',
    'remember_s', 'jump_s', 'oldest')
  if meta[9] and tonumber(meta[9]) > SCHEMA then
    error({err = 'SCHEMA writers of this cell are of schema ' .. meta[9] .. ' or later, this release of ' .. SCHEMA})
  end
  local seq = meta[2] or '0'
  local cell = {
    now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000, epoch = meta[1] or '', seq = seq + 0, seq_text = seq,
    settled = meta[5] == '1', declared_seq = meta[6] or '0', remember_ms = (meta[7] or 600) * 1000,
    origin = table.remove(ARGV),
  }
  local replication = redis.call('INFO', 'replication')
  local passed_ms, jump_ms = cell.now_ms - (meta[3] or 0), (meta[8] or 15) * 1000
  local same = meta[1] and cell.settled and id_after(replication, 'master_replid:') == meta[4]
  if not same or passed_ms >= 500 or passed_ms < -1000 or passed_ms > jump_ms then
    note(cell, meta, replication, passed_ms, jump_ms, deadlines)
  end
  return cell
end
