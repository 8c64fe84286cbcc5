-- The transitions of placements, in memory; commit() writes them. docs/model/placements.pml has the rules and what goes
-- wrong without each.
-- include: claim_record
-- include: fence
-- include: leased
-- include: token

-- Return the state of a host in this epoch: `here` (it has attested), `lost` (written off in this epoch, or being
-- evacuated: no scheduler waits for it), `lost-before` (written off in an earlier epoch, and not returned) or
-- `unattested` (only the host knows the state of its claims).
local function read_host_state(cell, host_key)
  local host = redis.call('HMGET', host_key, 'epoch', 'written_off', 'draining')
  if host[1] == cell.epoch then
    return 'here'
  elseif host[1] ~= 'lost' then
    return 'unattested'
  end
  return (host[2] == cell.epoch or host[3] == 'evacuate') and 'lost' or 'lost-before'
end

-- Return whether a host that has not attested in this epoch may still report placements.
local function is_unattested()
  return redis.call('HGET', KEY.meta, 'unattested') ~= '0'
end

local function is_lost(host_state)
  return host_state == 'lost' or host_state == 'lost-before'
end

local function is_superseded(claim, placement)
  local closed = claim.fields.closed
  return not (closed and not newer(placement.root, closed)) and is_doomed(claim, placement)
end

local function stop(placement, end_reason, attested)
  placement.state, placement.end_reason = 'ending', end_reason
  placement.expires_at_ms, placement.move_deadline_ms = nil, nil
  placement.op, placement.notify = 'ending', attested and 'end' or 'none'
end

local function free(claim, placement, end_reason)
  claim.placements[placement.placed] = nil
  claim.freed = claim.freed or {}
  placement.op = end_reason
  claim.freed[#claim.freed + 1] = placement
end

-- Release a placement. It is freed if its host was written off, or if its host has attested and has not accepted it or
-- `force` is set; otherwise its host is asked to stop it. On a host that has not attested in this epoch the placement
-- stays counted, because only the host knows what it has; the host drops it when it attests.
local function take_back(claim, placement, end_reason, host_state, force)
  local attested = host_state == 'here'
  if is_lost(host_state) or (attested and (force or placement.state == 'claimed')) then
    free(claim, placement, placement.end_reason or end_reason)
  elseif placement.state ~= 'ending' then
    stop(placement, end_reason, attested)
  end
end

-- Return the reason for which a claim was closed, or `moved` if a later placement supersedes this one.
local function reason_of(claim, placement)
  return is_superseded(claim, placement) and 'moved' or claim.fields.closed_reason or 'released'
end

-- Return whether the claim is to be placed again because of a placement that was made after the claim was closed.
local function retries_since(claim)
  local root, closed = claim.fields.retry_root, claim.fields.closed
  return root ~= nil and (closed == nil or newer(root, closed))
end

-- Return whether a placement was made by a claim or an unshelving after this token ('' is before all of them), or
-- descends from one.
local function has_placement_after(claim, token)
  for _, placement in pairs(claim.placements) do
    if newer(placement.root, token) then
      return true
    end
  end
  return false
end

-- Close the claim: nothing that was placed up to `token` is wanted any more. The claim can be unshelved and placed
-- after that, and repeating an earlier closing does not affect later placements. A release outranks a shelving with a
-- later token if nothing was placed since: a replaced primary that did not know of the shelving may have answered the
-- release, and an owner never shelves a released claim.
local function close(claim, token, end_reason)
  local closed, last, retry_root = claim.fields.closed, claim.tombstone, claim.fields.retry_root
  if not closed or newer(token, closed) then
    claim.fields.closed, claim.fields.closed_reason, claim.fields.closed_by = token, end_reason, nil
  elseif claim.fields.closed_reason == 'shelved' and not has_placement_after(claim, token)
      and not (last and newer(last.root, token)) and not (retry_root and newer(retry_root, token)) then
    claim.fields.closed_reason = end_reason
  end
  if not retries_since(claim) then
    claim.fields.retry_root, claim.fields.retry_from, claim.fields.retry_reason = nil, nil, nil
  end
end

local TRIED = 'tried.' -- and the name of a host on which the claim has failed since it was last active

-- Return whether all of the claim is closed already, for this reason or for good.
local function is_closed(claim, end_reason)
  local closed_reason = claim.fields.closed_reason
  return closed_reason ~= nil and not has_placement_after(claim, claim.fields.closed or '') and not retries_since(claim)
    and (closed_reason == end_reason or closed_reason ~= 'shelved')
end

-- Make a placement active, as its host or the journal reports. The claim gets all its attempts again.
local function mark_active(cell, claim, placement)
  placement.state, placement.expires_at_ms, placement.move_deadline_ms = 'active', nil, nil
  raise_current(claim, placement)
  claim.fields.attempts, claim.fields.failed_moves, claim.fields.move_failed_at_ms = nil, nil, nil
  if claim.fields.on_exit == 'replace' then
    claim.fields.active_at_ms = text(cell.now_ms)
  end
  for field in pairs(claim.fields) do
    if string.sub(field, 1, #TRIED) == TRIED then
      claim.fields[field] = nil
    end
  end
end

local function activate(cell, claim, placement)
  mark_active(cell, claim, placement)
  placement.op, placement.notify = 'active', 'none'
end

-- Return whether the claim has another wanted placement, so that the failure of this one does not end the claim.
local function has_other_wanted(claim, placement)
  for _, other in pairs(claim.placements) do
    if other ~= placement and other.state ~= 'ending' and not is_doomed(claim, other) then
      return true
    end
  end
  return false
end

-- A placement has failed before it was active, or its work has ended and must be placed again. Unless the claim has
-- another wanted placement or was closed, a scheduler places it again, as often as the request allows.
local MAX_ATTEMPTS = 1
local FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 500, 60000
local FIRST_RESTART_MS, STEADY_MS = 1000, 600000

local function backoff(first_ms, doublings)
  return math.min(LONGEST_PAUSE_MS, first_ms * 2 ^ doublings)
end

-- Count a restart, and return the pause before work that has ended by itself is placed again. It grows each time, until
-- the work has run for ten minutes.
local function restart_pause(cell, claim)
  local ran_ms = cell.now_ms - to_int(claim.fields.active_at_ms, cell.now_ms, cell.now_ms)
  local restarts = ran_ms < STEADY_MS and to_int(claim.fields.restarts, 0, 0) or 0
  claim.fields.restarts = text(restarts + 1)
  return backoff(FIRST_RESTART_MS, restarts)
end

local function retry_pause(attempts)
  return attempts == 1 and 0 or backoff(FIRST_PAUSE_MS, attempts - 2)
end

-- Return whether a service, which is placed again whenever it ends, has ended after it was active. That resets its
-- attempts.
local function is_restart(claim, placement)
  return claim.fields.on_exit == 'replace' and claim.current ~= nil and claim.current.placed == placement.placed
end

local function wait_for_place(claim, placement, end_reason, pause_ms)
  claim.fields.retry_root, claim.fields.retry_from = placement.root, placement.token
  claim.fields.retry_reason = end_reason
  claim.fields.searches = nil
  claim.fields[TRIED .. placement.host] = '1'
  claim.retry_in_ms = pause_ms
end

local function retry(cell, claim, placement, end_reason, in_any_case)
  if has_other_wanted(claim, placement) or is_doomed(claim, placement) then
    return
  elseif to_int(claim.fields.runtime_deadline_ms, MOST, MOST) <= cell.now_ms then
    return close(claim, placement.root, 'max-runtime')
  end
  local attempts = to_int(claim.fields.attempts, 1, 1)
  if in_any_case then
    wait_for_place(claim, placement, end_reason, 0)
  elseif is_restart(claim, placement) then
    claim.fields.attempts = '0'
    wait_for_place(claim, placement, end_reason, restart_pause(cell, claim))
  elseif attempts < to_int(claim.fields.max_attempts, MAX_ATTEMPTS, MAX_ATTEMPTS) then
    wait_for_place(claim, placement, end_reason, retry_pause(attempts))
  end
end

-- If the failed placement was the target of a move, the claim stays where it is. Schedulers wait longer each time
-- before they move it off a host that is drained or evacuated.
local function note_failed_move(cell, claim, placement)
  if claim.current and ranks_above(placement, claim.current) and has_other_wanted(claim, placement) then
    claim.fields.failed_moves = text(to_int(claim.fields.failed_moves, 0, 0) + 1)
    claim.fields.move_failed_at_ms = text(cell.now_ms)
  end
end

-- No host has room for a pending claim now: schedulers repeat the search at growing intervals.
local function postpone_search(claim)
  local searches = to_int(claim.fields.searches, 0, 0) + 1
  claim.fields.searches = text(searches)
  claim.retry_in_ms = backoff(FIRST_PAUSE_MS, searches)
end

-- Return the placement that a caller names by host and token, or the outcome that says why there is none. The host is
-- checked first: before it has attested, "no such claim" would only mean that the store has lost it, and an agent that
-- relied on the answer would stop work that should run.
local function find_placement(cell, claim, host, host_key, token)
  local host_state = read_host_state(cell, host_key)
  if host_state == 'unattested' or host_state == 'lost-before' then
    local removed = claim.exists and not next(claim.placements) and redis.call('EXISTS', host_key) == 0
    if not removed then
      return nil, 'NOT_ATTESTED'
    end
  end
  if not claim.exists then
    return nil, 'UNKNOWN'
  end
  for _, placement in pairs(claim.placements) do
    if placement.host == host and placement.token == token then
      return placement, nil, host_state
    end
  end
  local last = claim.tombstone
  local same = last and last.host == host and last.token == token
  return nil, same and 'ENDED' or 'STALE'
end

-- Note on a host that is down that a claim was released by force. The host may report the claim again after the store
-- has forgotten it: attest.lua reads the note.
local function note_dropped(cell, host, placement)
  if to_int(redis.call('HGET', host.key, 'alive_until_ms'), 0, 0) <= cell.now_ms then
    host.note = {'dropped.' .. placement.placed, placement.placed}
  end
end

-- Return the current token, at or above that of every placement so far. A placement that this script makes gets the
-- next one.
local function token_now(cell)
  return cell.epoch .. '.' .. text(cell.seq)
end

local function next_token(cell)
  return cell.epoch .. '.' .. text(cell.seq + 1)
end
