-- about(may_be_lost): the common start of the scripts about one placement of a claim: the cell, the objects passed from
-- KEYS[8] on, the claim, the host, and the placement that ARG.host and ARG.token name, or the outcome that says why
-- there is none. may_be_lost: also accept a host that was written off in this epoch, which counts as dead until it has
-- attested; for scripts that only end a placement.
-- answer_about(): the reply. commit_about(): write the changes, with `reason` if there is one, and return the reply;
-- RETRY with the names of missing keys if nothing could be written.
-- include: commit
-- include: reason
-- include: transitions
local function about(may_be_lost)
  local cell, objects = fence(KEY.deadlines), passed(8)
  local claim, host = load_claim(KEY.claim, ARG.id), objects['host:' .. ARG.host]
  local placement, no, host_state = find_placement(cell, claim, ARG.host, host.key, ARG.token)
  if host_state == 'lost' and not may_be_lost then
    no = 'NOT_ATTESTED'
  end
  return {
    cell = cell, objects = objects, claim = claim, host = host, placement = placement, no = no, host_state = host_state,
  }
end

local function answer_about(it, outcome, ...)
  return {outcome, it.cell.epoch, it.cell.now_ms, ...}
end

local function commit_about(it, outcome, ...)
  if it.reason and it.reason ~= '' then
    it.placement.reason = it.reason
  end
  local lacking = commit(it.cell, {it.claim}, it.objects, new_due())
  if lacking then
    return answer_about(it, 'RETRY', unpack(lacking))
  end
  if it.reason then
    keep_reason(it.cell, it.claim, it.objects['reason:' .. ARG.id], it.placement, it.reason)
  end
  return answer_about(it, outcome, ...)
end

-- Delete the inbox entry of a notification that is no longer needed, although no field of the claim changes.
local function acknowledge(it, entry_id)
  if entry_id and entry_id ~= '' and redis.call('XDEL', it.host.inbox, entry_id) == 1
      and redis.call('XLEN', it.host.inbox) == 0 then
    redis.call('DEL', it.host.inbox)
  end
end
