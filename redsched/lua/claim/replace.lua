#!lua
-- replace: create another placement for each of some existing claims, on the first of its candidates that fits now; all
-- of them or none. For moves, for claims whose last placement failed, and for shelved claims. Separate from claim.lua
-- because the server creates all functions of a script again at each call, and few claims are ever placed again.
-- KEYS meta changes hosts deadlines reconcile shelved quota ...
-- ARGV epoch now_ms seen_seq fresh lease_ms digest project owner own_only members hosts lists request limited gang
-- ARGV call_id most_alternates alternates max_runtime_s reservation noted carried ...
-- Further keys: as for claim.lua; after those of groups and pools, the other claims on whose hosts the decision
-- depends, then two for each member: the host of the placement that it is based on, and the gang of its claim (that
-- host again if it is in none).
-- The arguments are as for claim.lua; between the members and the conditions, they have for each member: the token of
-- the placement that it is based on; the cause (moved, failed, gang or shelved; gang: it is pending, and placed again
-- with its gang); move_deadline_ms, the time from now within
-- which the new placement of a move must become active ('' for no limit). Then the number of those other claims, and
-- for each the hosts that it was on, separated by spaces.
-- Reply as for claim.lua, without CONFLICT; and for a claim that cannot be placed again
--   NO_CLAIM (it does not exist) | STALE (it has another token) | ENDED (it has ended, is ending, or is not to be
--   placed again) | MOVING (the placement is itself the target of a move) | GANG (its gang is incomplete, or has
--   failed) | NOT_ATTESTED (its host has not attested to this epoch) | SETTLING | RETRY (one of the other claims is on
--   other hosts now)
--   ALREADY_DONE   1 and the member as for OK: an earlier copy of the same call has placed it
-- include: claim_again
-- include: claim_arguments
-- include: claim_decision
-- include: claim_left
-- include: fence
-- include: place_members
-- include: quota_usage
local cell = fence(KEY.deadlines)
local call = parse_call(parse_again)
local refusal = again_outcome(cell, call) or outdated(cell)
  or (call.conditions and call.conditions.unsuited(cell, call))
if refusal then
  return refusal
end
for _, member in ipairs(call.members) do
  member.used = call.quota and quota_usage(member.again.claim)
  member.left = call.conditions and left_behind(call, member)
end
return place_members(cell, call, write_again)
