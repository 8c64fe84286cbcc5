#!lua
-- claim: members x ordered candidates. Each member gets the first of its candidates that fits now; all or nothing.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 quota of the project, then the claim of each member, then
--       host, claims, inbox of each host; with conditions the facts of each host where ARGV says so, then each group
--       and shared pool; with formers claim, host and gang of each; with a gang its key; with a request its key
-- ARGV  1 epoch, 2 now_ms and 3 seen_seq of the decision, 4 fresh (1: the ids were made for this very call),
--       5 lease_ms, 6 digest, 7 project, 8 consumer, 9 members, 10 hosts, 11 amount lists, 12 request ('' for
--       none to be kept), 13 limited (1: several cells share a quota of the project), 14 gang (1: they stand or fall
--       together), 15 formers, 16 mark of this call, where it may have to be undone ('' else); then the hosts' names;
--       then each amount list as length, slot, amount ...; then each member as id, candidates, host number, list
--       number ... (numbers from 1); then the formers: see include/claim_former.lua; then the conditions, if there are
--       any: see include/claim_conditions.lua
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        n, host, token, expires_at_ms, state, candidate number of each member; then the number of groups and
--             pools written, kind, name, version, length, field, value ... of each; then the hosts looked at
--   SAME      n and the members as OK ('' for the candidate), for what these ids were given before; nothing is written
--             but the mark: what is answered now, the undoing of an earlier call must leave
--   FULL      number of the first member that no candidate has room for; then the hosts looked at
--   OVER SETTLING UNSHARED   of the project's quota, where all members have a place: see include/quota_room.lua
--   UNKNOWN   a group or pool that nobody has declared, as `server-group:web`, `pool:licences`
--   GONE CONFLICT LATE EPOCH SETTLING BEHIND   nothing more (the protocol's "Ids"; EPOCH: decided in another epoch;
--             BEHIND: decided before an aggregate, a pool or a host's own word changed which hosts may be chosen: that
--             is not looked at here, so decide again on what is at `declared_seq` of meta)
--   MOVING FORMER STALE GONE GANG ATTEST   of a claim that is to be succeeded: see include/claim_former.lua
--   A host looked at: host number, version, cause ('' or UNKNOWN ATTEST DOWN DISABLED DRAINING LIMIT GROUP or the slot
--   that was too small), claims, starting, length, slot, claimed ...: what it holds after this script.
-- include: claim_arguments
-- include: claim_candidates
-- include: claim_former
-- include: claim_known
-- include: claim_left
-- include: claim_things
-- include: claim_write
-- include: fence
-- include: publish
-- include: quota_claim
-- include: quota_write
-- include: things
local cell = fence()
local call = parse_call()
local refusal = known_outcome(cell, call) or former_outcome(cell, call) or (call.things and unsuited(cell, call))
if refusal then
  return refusal
end

for number, member in ipairs(call.members) do
  member.left = call.things and left_behind(call, member)
  member.host = first_fit(cell, call, member)
  if not member.host then
    return looked_at(call, {'FULL', cell.epoch, cell.now_ms, number})
  end
end

local over = over_quota(cell, call)
if over then
  return over
end

-- Every check is passed. From here on, only writes.
local things = call.things and changed_things(call.things) or {}
local expires = text(cell.now_ms + call.lease_ms)
for number, member in ipairs(call.members) do
  write_claim(cell, call, member, expires, #call.members - number + #things)
end
for _, host in pairs(call.hosts) do
  if host.placed > 0 then
    write_host(host)
  end
end
if call.things then
  write_things(cell, things, 'claimed')
end
if call.quota then
  write_quota(cell, call.quota)
end
write_beside(call)
finish(cell)

local reply = {'OK', cell.epoch, cell.now_ms, #call.members}
for _, member in ipairs(call.members) do
  reply[#reply + 1] = member.host.name
  reply[#reply + 1] = member.token
  reply[#reply + 1] = expires
  reply[#reply + 1] = 'claimed'
  reply[#reply + 1] = member.candidate
end
return looked_at(call, tell_things(things, reply))
