#!lua flags=allow-oom
-- repair_due: recompute what is due for some claims: the deadlines of their leases, their entries in `reconcile` and
-- `shelved`, and how long ended claims are remembered.
-- KEYS meta changes hosts deadlines reconcile shelved events ...
-- ARGV reason ...
-- Further keys: the claim of each id. Then the ids.
-- Reply OK | ALREADY_DONE (nothing was wrong) | SETTLING (hosts may still restore claims); epoch, now_ms
-- include: due
-- include: log_event
local cell, repaired = fence(KEY.deadlines), {}
if not cell.settled then
  return {'SETTLING', cell.epoch, cell.now_ms}
end
local gone = {deadlines = {}, reconcile = {}, shelved = {}}

local function repair_deadline(claim)
  local deadline, noted = deadline_of(claim), redis.call('ZSCORE', KEY.deadlines, claim.id)
  if noted and not deadline then
    gone.deadlines[#gone.deadlines + 1] = claim.id
    return true
  end
  return false
end

local function repair_reconcile(claim)
  local noted = redis.call('ZSCORE', KEY.reconcile, claim.id)
  if noted and not claim.exists then
    gone.reconcile[#gone.reconcile + 1] = claim.id
    return true
  elseif claim.exists and not noted and is_unfinished(claim) then
    return redis.call('ZADD', KEY.reconcile, text(cell.now_ms), claim.id) == 1
  end
  return false
end

local function repair_shelved(claim)
  local noted = redis.call('SISMEMBER', KEY.shelved, claim.id) == 1
  local shelved = claim.exists and is_shelved(claim)
  if shelved and not noted then
    return redis.call('SADD', KEY.shelved, claim.id) == 1
  elseif noted and not shelved then
    gone.shelved[#gone.shelved + 1] = claim.id
  end
  return noted and not shelved
end

-- Ended claims expire after a time; living and shelved ones never do.
local function repair_memory(claim)
  local forgotten = claim.exists and redis.call('PTTL', claim.key) ~= -1
  local ended = not next(claim.placements) and claim.tombstone and claim.tombstone.state == 'ended'
  if claim.exists and ended and not is_shelved(claim) then
    local waits = redis.call('ZSCORE', KEY.reconcile, claim.id)
    return not forgotten and not waits and redis.call('PEXPIRE', claim.key, cell.remember_ms) == 1
  end
  return forgotten and redis.call('PERSIST', claim.key) == 1
end

for i = 2, #ARGV do
  local claim = load_claim(KEYS[6 + i], ARGV[i])
  local changed = repair_deadline(claim)
  changed = repair_reconcile(claim) or changed
  changed = repair_shelved(claim) or changed
  changed = repair_memory(claim) or changed
  repaired[#repaired + 1] = changed and claim.id or nil
end
for _, id in ipairs(repaired) do
  log_event(cell, KEY.events, ARG.reason, {'claim', id})
end
in_chunks('ZREM', KEY.deadlines, gone.deadlines)
in_chunks('ZREM', KEY.reconcile, gone.reconcile)
in_chunks('SREM', KEY.shelved, gone.shelved)
return {#repaired > 0 and 'OK' or 'ALREADY_DONE', cell.epoch, cell.now_ms}
