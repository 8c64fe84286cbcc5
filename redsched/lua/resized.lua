#!lua flags=allow-oom
-- resized: the host's word that a claim's work has these amounts: the wanted ones, or those of before where it could
-- not be resized. What the claim holds above them is free.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 claim, 7 host, 8 claims, 9 inbox, then shared pools
--       and the quota
-- ARGV  1 host, 2 id, 3 token, then slot, amount ...: all that it has
-- Reply OK | SAME (no resize is under way) | CONFLICT (it does not hold as much) | ENDING | GONE | STALE | UNKNOWN
--   | ATTEST; epoch, now_ms; or RETRY, epoch, now_ms and the pools and the quota whose keys are missing
-- include: change_host
-- include: claim_state
-- include: fence
-- include: key_set
-- include: other_amounts
-- include: passed_things
-- include: publish
-- include: read_hash
-- include: take_hint
-- include: things
local cell, keys = fence(), key_set(6)
local claim = read_hash(keys.claim)
local was, wanted, now = amounts_at(claim, 'amount.'), amounts_at(claim, 'wanted.'), amounts_in_argv(4)
local words = {ended = 'GONE', ending = 'ENDING'}
local no = obstacle(cell, keys, claim, ARGV[1], ARGV[3]) or words[claim.state] or (not next(wanted) and 'SAME')
if not no and not equal_amounts(larger_of(was, now), was) then
  no = 'CONFLICT'
end
if no then
  return {no, cell.epoch, cell.now_ms}
end
local things, retry = passed_things(10), {'RETRY', cell.epoch, cell.now_ms}
if lacks_counters(things, was, claim.project, retry) then
  return retry
end
local fields = exchanged(keys.host, things, was, now, claim.project)
local changed, op = changed_things(things), equal_amounts(now, wanted) and 'resized' or 'resize-failed'
change_host(cell, keys.host, ARGV[1], op, #changed, ARGV[2], fields)
write_things(cell, changed, op)
write_amounts(keys.claim, 'amount.', was, now)
write_amounts(keys.claim, 'wanted.', wanted, {})
take_hint(keys.inbox, claim.inbox_id)
redis.call('HDEL', keys.claim, 'inbox_id')
finish(cell)
return {'OK', cell.epoch, cell.now_ms}
