#!lua
-- local: the host's word that it runs work which nobody has claimed, or that such work has other amounts now. It is
-- a fact, so it is accepted even where the host is over then; it is active, and its host ends it (gone).
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, 10 shelved, then shared
--       pools and quotas
-- ARGV  1 host, 2 id, 3 token of the last placing that the host knows of ('' for none), 4 project, 5 consumer, then
--       slot, amount ...: all that it has
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        token
--   SAME      likewise: it stands so already
--   STALE     the token of a placing that the host does not know of, of a claim that lives or has ended: a late copy
--   CONFLICT  the id is another claim's, or is in use on another host
--   RETRY     the pools and quotas whose keys are missing
--   ENDING (its host has been asked to stop it) ATTEST   nothing more
-- include: change_host
-- include: claim_state
-- include: counted_in
-- include: fence
-- include: key_set
-- include: mark_over
-- include: other_amounts
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: take_hint
-- include: things
-- include: whole
local cell, keys = fence(), key_set(6)
local claim, known = read_hash(keys.claim)
local function answer(outcome, ...)
  return {outcome, cell.epoch, cell.now_ms, ...}
end
local lives = known and claim.state ~= 'ended'
local was, now = lives and amounts_at(claim, 'amount.') or {}, amounts_in_argv(6)
if obstacle(cell, keys, claim, ARGV[1]) == 'ATTEST' then
  return answer('ATTEST')
elseif known and (claim.digest ~= 'local' or (lives and claim.host ~= ARGV[1])) then
  return answer('CONFLICT')
elseif claim.state == 'ending' then
  return answer('ENDING')
end
local stands = claim.state == 'active' and not next(amounts_at(claim, 'wanted.'))
if stands and claim.project == ARGV[4] and claim.consumer == ARGV[5] and equal_amounts(was, now) then
  return answer('SAME', claim.token)
end
if known and claim.token ~= ARGV[3] then
  return answer('STALE', claim.token)
end
local things, retry = passed_things(11), answer('RETRY')
local lacking = lacks_counters(things, larger_of(was, now), ARGV[4], retry)
if lives and lacks_counters(things, was, claim.project, retry) or lacking then
  return retry
end

local host = redis.call('HMGET', keys.host, 'claims', 'starting')
local fields = exchanged(keys.host, things, was, now)
if lives then
  count_usage(things, as_claim(was, claim.project), -1)
end
count_usage(things, as_claim(now, ARGV[4]), 1)
if not lives then
  fields[#fields + 1] = 'claims'
  fields[#fields + 1] = text(whole(host[1], 0, MOST - 1) + 1)
elseif claim.state ~= 'active' then -- an attestation without it has made it one to be taken up
  fields[#fields + 1] = 'starting'
  fields[#fields + 1] = text(math.max(0, whole(host[2], 0, MOST) - 1))
end
local changed = changed_things(things)
change_host(cell, keys.host, ARGV[1], 'local', #changed, ARGV[2], fields)
local token = cell.epoch .. '.' .. text(cell.seq)
write_things(cell, changed, 'local')
take_hint(keys.inbox, claim.inbox_id)
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('DEL', keys.claim) -- with it goes the time to live of a tombstone
redis.call('HSET', keys.claim, 'host', ARGV[1], 'state', 'active', 'project', ARGV[4], 'consumer', ARGV[5],
  'digest', 'local', 'claimed_at_ms', claim.claimed_at_ms or text(cell.now_ms), 'token', token)
write_amounts(keys.claim, 'amount.', {}, now)
redis.call('SADD', keys.claims, ARGV[2])
redis.call('SREM', KEYS[10], ARGV[2])
mark_over(keys.host)
for _, thing in ipairs(changed) do
  mark_over(thing.key)
end
finish(cell)
return answer('OK', token)
