#!lua flags=allow-oom
-- succeed: whatever is due between a claim and the one that is to succeed it, or has: give the former one back once the
-- target is active, the target once it is not wanted; have the owner's id point to the one that lives; forget the rest.
-- The outcome depends on the two alone, so that it can be called at any time, by anyone, and as often as one likes.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 shelved, 7 target's claim, 8 host, 9 claims, 10 inbox,
--       11 to 14 likewise of the former, 15 claim of the id by which their owner knows them, then groups, shared pools,
--       gangs and quotas
-- ARGV  1 id and 2 host of the target, 3 id and 4 host of the former, 5 owner's id (perhaps that of the former). A
--       claim without any succession is sent as all three
-- Reply OK | SAME (nothing was due) | EARLY (the target is not active yet) | ATTEST (a host has not attested to this
--   epoch) | UNKNOWN; epoch, now_ms
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas whose keys are missing; none: a claim is on
--   another host
-- include: chores
-- include: claim_state
-- include: conclude
-- include: fence
-- include: give_back
-- include: counted_in
-- include: passed_things
-- include: quota_swap
-- include: read_hash
-- include: succession
-- include: things
local cell = fence()
local target, former = side(7, ARGV[1]), side(11, ARGV[3])
local root = ARGV[5] == ARGV[3] and former or {id = ARGV[5], keys = {claim = KEYS[15]}, claim = read_hash(KEYS[15])}
local function answer(outcome)
  return {outcome, cell.epoch, cell.now_ms}
end
for one, host in pairs({[target] = ARGV[2], [former] = ARGV[4]}) do
  if one.claim.state and one.claim.state ~= 'ended' then
    local no = obstacle(cell, one.keys, one.claim, host)
    if no then
      return answer(no == 'STALE' and 'RETRY' or no)
    end
  elseif not one.claim.state and not cell.settled then
    return answer('ATTEST')
  end
end
if target.id == former.id or not (target.claim.state or former.claim.state) then
  return answer(target.claim.state and 'SAME' or 'UNKNOWN')
end
local pending = target.claim.former == former.id
local all_heard = redis.call('HGET', KEYS[1], 'unattested') == '0'
local step = disowned_step(target, former, root)
  or (pending and pending_step(target, former, cell.now_ms, all_heard))
  or later_step(target, former)
if step.waits then
  if step.by_ms then
    redis.call('ZADD', KEYS[5], step.by_ms, target.id)
  else
    redis.call('ZREM', KEYS[5], target.id)
  end
  if former.claim.state == 'ended' and not left_to_do(former.claim) then
    redis.call('ZREM', KEYS[5], former.id) -- it is seen to with the target, whatever becomes of that
  end
  return answer('EARLY')
end
local things, retry, given = passed_things(16), answer('RETRY'), step.gives
if step.points and target.claim.state and lacks(things, target.claim, retry) then
  return retry
end
if given and given.claim.state and not OVER[given.claim.state] then
  if step.points then
    former.claim.next, former.claim.next_token = target.id, target.claim.token
  end
  local reply = give_back(cell, given.keys, given.claim, given.id, step.why, false, {}, things)
  if reply[1] == 'RETRY' then
    return reply
  end
  given.claim.state, given.claim.why = reply[1] == 'OK' and 'ended' or 'ending', step.why
end
if given == target then
  -- The target's end is a chore of its own. It lets go of both where the one is still to succeed the other, which leads
  -- to no other one; else the former's end is seen to by itself.
  local lets_go = pending and (former.claim.next or target.id) == target.id
  for _, one in ipairs({target, former}) do
    if not left_to_do(one.claim) and (one == former and lets_go or one == target and one.claim.state ~= 'ended') then
      redis.call('ZREM', KEYS[5], one.id)
    end
  end
  return answer('OK')
end
if step.points then
  swap_shared(things, target, former)
  write_things(cell, changed_things(things), 'moved')
end
conclude(cell, step, target, former, root)
local done = given or step.points or step.clears or step.closes
return answer(done and 'OK' or 'SAME')
