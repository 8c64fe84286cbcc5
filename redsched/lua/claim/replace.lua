#!lua
-- replace: existing claims get another placement, each on the first of its candidates that fits now; all or nothing.
-- For moves, for claims whose last placement failed, and for shelved ones. Apart from claim.lua because the server
-- rebuilds everything that a script defines at each call, and hardly any claim is ever placed again.
-- KEYS meta changes hosts deadlines reconcile shelved quota ...
-- ARGV epoch now_ms seen_seq fresh lease_ms digest project consumer members hosts lists request limited gang call_id
-- ARGV max_attempts on_exit most_alternates alternates gang_members ...
-- Further keys: as claim.lua; behind those of groups and pools the other claims that the places were chosen beside,
-- then two for each member: the host of the placement that it is based on, and the gang of its claim (that host again
-- where it is in none).
-- As claim.lua; and between the members and the conditions for each member: the token of the placement that it is based
-- on; why (moved, failed or shelved); move_deadline_ms, how long from now on a move may take until the new placement is
-- active ('' for any time). Then the number of those other claims, and of each the hosts that it was on, a space
-- between them.
-- Reply as claim.lua, without CONFLICT; and of a claim that cannot be placed again
--   NO_CLAIM (there is none) | STALE (it has another token) | ENDED (it has ended, is ending, or is not to be placed
--   again) | MOVING (it is itself not active yet) | GANG (its gang is waited for, or has failed) | NOT_ATTESTED (its
--   host has not attested to this epoch) | SETTLING | RETRY (a claim that its place was chosen beside is elsewhere now)
--   ALREADY_DONE   1 and the member as for OK: it was placed by an earlier sending of the same
-- include: claim_again
-- include: claim_arguments
-- include: claim_decision
-- include: claim_left
-- include: fence
-- include: place_members
-- include: quota_usage
local cell = fence(KEY.deadlines)
local call = parse_call(parse_again)
local refusal = again_outcome(cell, call) or outdated(cell, call)
  or (call.conditions and call.conditions.unsuited(cell, call))
if refusal then
  return refusal
end
for _, member in ipairs(call.members) do
  member.used = call.quota and quota_usage(member.again.claim)
  member.left = call.conditions and left_behind(call, member)
end
return place_members(cell, call, write_again)
