#!lua
-- resize: the owner wants other amounts of a claim: all of them, absolute. One that no host has taken up has them at
-- once. Else it holds the larger of both until its host has made it so (resized), which is asked for in its inbox.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then shared pools
--       and the quota
-- ARGV  1 host, 2 id, 3 token, 4 limited (as in claim.lua), then slot, amount ...
-- Reply outcome, epoch, now_ms, then by outcome
--   OK     token (a new one), state
--   SAME   likewise: this token was resized to these amounts, or the claim has or wants them; nothing is written
--   FULL   the slot that has no room, or whose limits are not kept
--   OVER SETTLING UNSHARED   of the project's quota: see include/quota_room.lua
--   RETRY  the pools and the quota whose keys are missing
--   MOVING the claim that is to succeed it, or its own id: it is itself still to succeed another
--   ENDING GONE STALE UNKNOWN ATTEST, SETTLING (more of a shared pool, and the cell waits for its hosts)   nothing more
-- include: change_host
-- include: claim_state
-- include: fence
-- include: hint
-- include: key_set
-- include: other_amounts
-- include: passed_things
-- include: publish
-- include: quota_of
-- include: quota_room
-- include: quota_usage
-- include: read_hash
-- include: resize_fit
-- include: take_hint
-- include: things
-- include: whole
-- How much more of each class `now` is than `was`.
local function grown(was, now)
  local more, before = quota_usage(as_claim(now)), quota_usage(as_claim(was))
  for class, amount in pairs(more) do
    more[class] = amount - (before[class] or 0)
  end
  return more
end

local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local function answer(outcome, ...)
  return {outcome, cell.epoch, cell.now_ms, ...}
end
local no = obstacle(cell, keys, claim, ARGV[1])
if no then
  return answer(no)
end
local was, former, wanted = amounts_at(claim, 'amount.'), amounts_at(claim, 'wanted.'), amounts_in_argv(5)
local same = equal_amounts(wanted, next(former) and former or was)
if claim.token ~= ARGV[3] and not (same and claim.resized_from == ARGV[3]) then
  return answer('STALE')
elseif claim.state == 'ended' or claim.state == 'ending' then
  return answer(claim.state == 'ended' and 'GONE' or 'ENDING')
elseif same then
  return answer('SAME', claim.token, claim.state)
elseif claim.next or claim.former then
  return answer('MOVING', claim.next or ARGV[2]) -- one of the two will go, and the other was decided on these amounts
end
local things, retry = passed_things(10), answer('RETRY')
if lacks_counters(things, larger_of(was, wanted), claim.project, retry) then
  return retry
end
for slot, amount in pairs(wanted) do
  if not cell.settled and string.sub(slot, 1, 5) == 'pool:' and amount > (was[slot] or 0) then
    return answer('SETTLING')
  end
end
local slot = too_small(keys.host, things, was, wanted)
if slot then
  return answer('FULL', slot)
end
local at_once = claim.state == 'claimed'
local now = at_once and wanted or larger_of(was, wanted)
local quota = things[quota_of(claim)]
local over = quota and quota_refusal(cell, quota, grown(was, now), ARGV[4] == '1')
if over then
  return over
end

local fields = exchanged(keys.host, things, was, now, claim.project)
local changed, number = changed_things(things), whole(redis.call('HGET', keys.host, 'inbox'), 0, 0) + 1
local op = at_once and 'resized' or 'resizing'
change_host(cell, keys.host, ARGV[1], op, #changed, ARGV[2], fields)
local token = cell.epoch .. '.' .. text(cell.seq)
write_things(cell, changed, op)
redis.call('HSET', keys.host, 'inbox', text(number))
take_hint(keys.inbox, claim.inbox_id)
local entry = hint(cell, keys.inbox, number, at_once and 'claim' or 'resize', ARGV[2], token)
redis.call('HSET', keys.claim, 'token', token, 'resized_from', ARGV[3], 'inbox_id', entry)
write_amounts(keys.claim, 'amount.', was, now)
write_amounts(keys.claim, 'wanted.', former, at_once and {} or wanted)
finish(cell)
return answer('OK', token, claim.state)
