#!lua
-- claim: place each member of a call on the first of its candidates that fits now; all members or none.
-- KEYS meta changes hosts deadlines reconcile shelved quota ...
-- ARGV epoch now_ms seen_seq fresh lease_ms digest project owner own_only members hosts lists request limited gang
-- ARGV call_id most_alternates alternates max_runtime_s reservation noted carried ...
-- Further keys: the claim of each member; then host, claims and inbox of each host; with
-- conditions the attributes of each host, if ARGV says so, then each group and shared pool; with alternates the key of
-- each member's list; with a gang its key; with a request its key.
-- epoch, now_ms, seen_seq: those of the decision. fresh: 1 if the ids were made for this call. owner: '' for none.
-- own_only: 1 if earlier claims with these ids are a CONFLICT if they have another owner. members, hosts, lists:
-- the number of each. request: the request to store, or ''. limited: 1 if the project is known to have a quota. quota:
-- of the project. gang: 1 if the members form a gang. call_id: of this call, if it may have to be undone, else ''.
-- max_runtime_s: of the request, '' for no limit. The time counts from a claim's first placement on, or from the one
-- that unshelved it: claims that replace.lua moves or retries keep the deadline that they have.
-- reservation: that of the request, if hosts are reserved for it; '*' if it may use what is kept for any; else ''.
-- alternates: other hosts that fit, separated by spaces; of those that no member gets, the first most_alternates are
-- stored for each claim. '' in calls of replace.lua.
-- noted: 1 if how the candidates were chosen will be written beside the claims, under the token of the first member.
-- carried: the number of fields that each claim keeps as they are; then name and value of each.
-- Then each amount list as length, slot, amount ...; then each member as id and candidates, each of which is the
-- numbers of a host and of an amount list, as `1:1 2:1` (from 1); then the conditions, if any: claim_conditions.lua
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        n, host, token, expires_at_ms, state, candidate number of each member; then the number of groups and
--             pools written, kind, name, version, length, field, value ... of each; then the hosts read
--   ALREADY_DONE   n and the members as for OK ('' for the candidate): the earlier placements of these ids. Only
--                  `call_id` is written, so that undoing an earlier call does not affect claims that this call returns
--   FULL      number of the first member that no candidate has room for; then the hosts read
--   OVER_QUOTA SETTLING UNSHARED   of the project's quota, if each member fits on a host: see quota_room.lua
--   UNKNOWN   the groups and pools that are not declared, as `server-group:web`, `pool:licences`
--   ENDED CONFLICT EXPIRED WRONG_EPOCH SETTLING STALE_VIEW   nothing more (ENDED: a claim with one of these ids has
--             ended, or is ending; WRONG_EPOCH: decided in another epoch;
--             STALE_VIEW: decided before an aggregate, a pool or a host's report changed which hosts may be chosen.
--             This script does not check such changes: decide again on a replica that has reached `declared_seq` of
--             meta)
--   A host read: host number, version, cause ('' or UNKNOWN NOT_ATTESTED DOWN DISABLED DRAINING LIMIT GROUP or the slot
--   that was too small), claims, starting, length, slot, claimed ...: what the host holds after this script.
-- include: claim_arguments
-- include: claim_known
-- include: claim_new
-- include: fence
-- include: place_members
local cell = fence(KEY.deadlines)
local call = parse_call()
return known_outcome(cell, call) or (call.conditions and call.conditions.unsuited(cell, call))
  or place_members(cell, call, write_new)
