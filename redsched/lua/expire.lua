#!lua flags=allow-oom
-- expire: end the claims whose lease has run out, in bounded batches, by any scheduler. What no host has taken up is
-- freed; what a host is starting becomes `ending`, for its work may already be there.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, then claim, host, claims, inbox of each, then groups and
--       shared pools
-- ARGV  id and host of each
-- Reply OK, epoch, now_ms, number expired, then the groups and pools whose keys are missing: claims that count in them
--   are left for another call. So are claims on hosts that have not attested to this epoch.
-- include: fence
-- include: publish
-- include: read_hash
-- include: claim_state
-- include: whole
-- include: in_chunks
-- include: things
-- include: amounts
-- include: counted_in
-- include: given_back
-- include: change_host
-- include: tombstone
-- include: hint
-- include: take_hint
-- include: end_claim
-- include: begin_ending
local cell, expired = fence(), 0
local things, reply = passed_things(6 + 2 * #ARGV), {'OK', cell.epoch, cell.now_ms, 0}
for i = 1, #ARGV, 2 do
  local keys = key_set(4 + 2 * i)
  local claim = read_hash(keys.claim)
  local no = obstacle(cell, keys, claim, ARGV[i + 1])
  local due = claim.expires_at_ms and tonumber(claim.expires_at_ms) <= cell.now_ms
  if not no and due and claim.state == 'claimed' then
    if not lacks(things, claim, reply) then
      end_claim(cell, keys, claim, ARGV[i], 'expired', {}, things)
      expired = expired + 1
    end
  elseif not no and due and claim.state == 'starting' then
    begin_ending(cell, keys, claim, ARGV[i], 'expired')
    expired = expired + 1
  elseif not claim.state or claim.state == 'ended' then
    redis.call('ZREM', KEYS[4], ARGV[i])
  end
end
finish(cell)
reply[4] = expired
return reply
