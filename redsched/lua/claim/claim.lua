#!lua
-- claim: members x ordered candidates. Each member gets the first of its candidates that fits now; all or nothing.
-- KEYS meta changes hosts deadlines reconcile shelved quota ...
-- ARGV epoch now_ms seen_seq fresh lease_ms digest project consumer members hosts lists request limited gang call_id
-- ARGV max_attempts on_exit most_alternates alternates gang_members ...
-- Further keys: the claim of each member, then host, claims, inbox of each host; with conditions the attributes of each
-- host where ARGV says so, then each group and shared pool; with a gang its key; with a request its key.
-- epoch, now_ms, seen_seq: those of the decision. fresh: 1 where the ids were made for this very call. members, hosts,
-- lists: how many there are of them. request: '' for none to be kept. limited: 1 where the project is known to have a
-- quota. quota: of the project. gang: 1 where the members stand or fall together. call_id: of this call, where it may
-- have to be undone ('' else). max_attempts: '' for one. on_exit: '' for release.
-- gang_members: as it is kept with each claim; '' for none.
-- alternates: hosts that fit too, a space between them; so many of those that no member gets are kept with each claim.
-- Then each amount list as length, slot, amount ...; then each member as id and candidates, each of which is the
-- numbers of a host and of an amount list, as `1:1 2:1` (from 1); then the conditions, if any: claim_conditions.lua
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        n, host, token, expires_at_ms, state, candidate number of each member; then the number of groups and
--             pools written, kind, name, version, length, field, value ... of each; then the hosts looked at
--   ALREADY_DONE   n and the members as OK ('' for the candidate), for what these ids were given before; nothing is
--             written but `call_id`: what is answered now, the undoing of an earlier call must leave
--   FULL      number of the first member that no candidate has room for; then the hosts looked at
--   OVER_QUOTA SETTLING UNSHARED   of the project's quota, where all members have a place: see quota_room.lua
--   UNKNOWN   a group or pool that nobody has declared, as `server-group:web`, `pool:licences`
--   ENDED CONFLICT EXPIRED WRONG_EPOCH SETTLING STALE_VIEW   nothing more (WRONG_EPOCH: decided in another epoch;
--             STALE_VIEW: decided before an aggregate, a pool or a host's report changed which hosts may be chosen:
--             that is not looked at here, so decide again on what is at `declared_seq` of meta)
--   A host looked at: host number, version, cause ('' or UNKNOWN NOT_ATTESTED DOWN DISABLED DRAINING LIMIT GROUP or the
--   slot that was too small), claims, starting, length, slot, claimed ...: what it holds after this script.
-- include: claim_arguments
-- include: claim_known
-- include: claim_new
-- include: fence
-- include: place_members
local cell = fence(KEY.deadlines)
local call = parse_call()
return known_outcome(cell, call) or (call.conditions and call.conditions.unsuited(cell, call))
  or place_members(cell, call, write_new)
