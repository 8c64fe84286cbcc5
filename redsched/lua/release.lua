#!lua flags=allow-oom
-- release: the owner gives the claim back. Frees at once what no host has taken up, or by force; else it is `ending`.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, 10 shelved, 11 claim of
--       the id by which its owner knows it (6 again: its own id, or only this one is meant), then groups, shared pools,
--       gangs and quotas
-- ARGV  1 host, 2 id, 3 token ('' for any), 4 how: ask, force, or unless-active (as ask), 5 mark of the call that is
--       undone ('' for none): STALE where another call has been told of the claim since, 6 whole (1: that id has
--       led here, and is given up whatever the claim has come to)
-- Reply OK (freed) | ENDING | SAME (had ended) | STALE | UNKNOWN | ATTEST
--   | ACTIVE (and was to be given back only unless it was: nothing is written); epoch, now_ms
--   or RETRY, epoch, now_ms and the groups, pools, gangs and quotas that it counts in and whose keys are missing
-- include: claim_state
-- include: fence
-- include: give_back
-- include: give_up
-- include: key_set
-- include: passed_things
-- include: read_hash
-- include: whole
-- It has succeeded the former, or has come up, or that one has failed: else only its own move is called off.
local function stands_for_all(claim)
  return claim.state == 'active' or claim.arrived or claim.former_why == 'failed' or not (claim.former or claim.fell)
end

local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3] ~= '' and ARGV[3] or nil)
-- Who is told of an owner's id is told of what it leads to, and leaves the mark with the id.
local mark = KEYS[11] ~= keys.claim and redis.call('HGET', KEYS[11], 'mark') or claim.mark
-- Nobody knew why it is over, and now its owner does: what was to succeed it, and comes back later, is not wanted.
local unexplained = claim.why == 'void' and not claim.next
local being_shelved = claim.state == 'ending' and claim.why == 'shelved'
local heeded = not claim.why or claim.why == 'released' or unexplained or being_shelved
local gives_up = KEYS[11] ~= keys.claim and (ARGV[5] == '' or mark == ARGV[5])
  and (ARGV[6] == '1' or (heeded and stands_for_all(claim)))
if not no and claim.state == 'ended' then
  no = 'SAME'
  if unexplained then
    redis.call('HSET', keys.claim, 'why', 'released')
  end
  if gives_up then
    give_up(cell, KEYS[11], ARGV[2])
  end
elseif not no and ARGV[5] ~= '' and mark ~= ARGV[5] then
  no = 'STALE'
elseif not no and claim.state == 'active' and ARGV[4] == 'unless-active' then
  no = 'ACTIVE'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
local reply = give_back(cell, keys, claim, ARGV[2], 'released', ARGV[4] == 'force', {}, passed_things(12))
if reply[1] == 'RETRY' then
  return reply
elseif reply[1] == 'OK' and ARGV[4] == 'force' and claim.state ~= 'claimed' then
  -- A host that is away may come back when nobody remembers the claim, and in another epoch: attest.lua looks here.
  if whole(redis.call('HGET', keys.host, 'alive_until_ms'), 0, 0) <= cell.now_ms then
    redis.call('HSET', keys.host, 'dropped.' .. ARGV[2], claim.token)
  end
end
if reply[1] == 'OK' then
  redis.call('SREM', KEYS[10], ARGV[2])
elseif being_shelved or unexplained then
  redis.call('SREM', KEYS[10], ARGV[2])
  redis.call('HSET', keys.claim, 'why', 'released') -- also while it is being shelved: nobody wants it back
end
if gives_up then
  give_up(cell, KEYS[11], ARGV[2])
end
return reply
