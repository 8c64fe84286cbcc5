#!lua flags=allow-oom
-- expire: end the claims whose lease has run out, in bounded batches, by any scheduler. What no host has taken up is
-- freed; what a host is starting becomes `ending`, for its work may already be there. Nobody waits for a host that was
-- written off: there both end, and so does what was ending before, with the reason that it had.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, then claim, host, claims, inbox of each, then groups,
--       shared pools, gangs and quotas
-- ARGV  id and host of each
-- Reply OK, epoch, now_ms, number expired, then the groups, pools, gangs and quotas whose keys are missing: claims that
--   count in them are left for another call. So are claims on hosts that have not attested to this epoch.
-- include: begin_ending
-- include: claim_state
-- include: counted_in
-- include: end_claim
-- include: fence
-- include: key_set
-- include: leased
-- include: passed_things
-- include: publish
-- include: read_hash
local function expire_claim(cell, keys, claim, id, things, deserted)
  if claim.state == 'claimed' or deserted then
    end_claim(cell, keys, claim, id, claim.why or 'expired', {}, things)
  else
    begin_ending(cell, keys, claim, id, 'expired', things)
  end
end

local cell, expired = fence(), 0
local things, reply = passed_things(6 + 2 * #ARGV), {'OK', cell.epoch, cell.now_ms, 0}
for i = 1, #ARGV, 2 do
  local keys = key_set(4 + 2 * i)
  local claim = read_hash(keys.claim)
  local no = obstacle(cell, keys, claim, ARGV[i + 1])
  local due = LEASED[claim.state] and claim.expires_at_ms and tonumber(claim.expires_at_ms) <= cell.now_ms
  local deserted = redis.call('HGET', keys.host, 'epoch') ~= cell.epoch
  if not no and (due or (deserted and claim.state == 'ending')) then
    if not lacks(things, claim, reply) then
      expire_claim(cell, keys, claim, ARGV[i], things, deserted)
      expired = expired + 1
    end
  elseif not claim.state or claim.state == 'ended' then
    redis.call('ZREM', KEYS[4], ARGV[i])
  end
end
finish(cell)
reply[4] = expired
return reply
