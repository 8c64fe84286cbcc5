#!lua
-- claim: members x ordered candidates. Each member gets the first of its candidates that fits now; all or nothing.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, then the claim of each member, then host, claims, inbox of each host
-- ARGV  1 epoch and 2 now_ms of the decision, 3 fresh (1: the ids were made for this very call), 4 lease_ms, 5 digest,
--       6 project, 7 consumer, 8 members, 9 hosts, 10 amount lists; then the hosts' names; then each amount list as
--       length, slot, amount ...; then each member as id, candidates, host number, list number ... (numbers from 1)
-- Reply outcome, epoch, now_ms, then by outcome
--   OK        n, host, token, expires_at_ms, state of each member; then the hosts looked at
--   SAME      as OK, for what these ids were given before; nothing is written
--   FULL      number of the first member that no candidate has room for; then the hosts looked at
--   GONE CONFLICT LATE EPOCH SETTLING   nothing more (the protocol's "Ids"; EPOCH: decided in another epoch)
--   A host looked at: host number, version, cause ('' or UNKNOWN ATTEST DOWN DISABLED DRAINING or the slot that was
--   too small), length, slot, claimed ...: what it holds after this script.
-- include: fence
-- include: publish
-- include: hint
-- include: whole
-- include: fit
-- include: claim_known
-- include: claim_arguments
-- include: claim_candidates
local cell = fence()
local call = parse_call()
local refusal = known_outcome(cell, call)
if refusal then
  return refusal
end

for number, member in ipairs(call.members) do
  member.host = first_fit(cell, call, member)
  if not member.host then
    return looked_at(call, {'FULL', cell.epoch, cell.now_ms, number})
  end
end

-- Every check is passed. From here on, only writes.
local expires = text(cell.now_ms + call.lease_ms)
for number, member in ipairs(call.members) do
  local host = member.host
  host.version = host.version + 1
  local fields = {'claim', member.id}
  for _, entry in ipairs(member.amounts) do
    fields[#fields + 1] = entry.claimed
    fields[#fields + 1] = text(host.slots[entry.slot].claimed)
  end
  publish(cell, 'host', host.name, host.version, 'claimed', #call.members - number, fields)
  member.token = cell.epoch .. '.' .. text(cell.seq)
  host.inbox = host.inbox + 1
  local entry_id = hint(cell, host.keys.inbox, host.inbox, 'claim', member.id, member.token)
  local claim = {'host', host.name, 'state', 'claimed', 'project', call.project, 'consumer', call.consumer,
    'digest', call.digest, 'claimed_at_ms', text(cell.now_ms), 'expires_at_ms', expires, 'token', member.token,
    'inbox_id', entry_id}
  for _, entry in ipairs(member.amounts) do
    claim[#claim + 1] = 'amount.' .. entry.slot
    claim[#claim + 1] = text(entry.amount)
  end
  if member.reopened then
    redis.call('DEL', member.key)
  end
  redis.call('HSET', member.key, unpack(claim))
  redis.call('ZADD', KEYS[4], expires, member.id)
  redis.call('SADD', host.keys.claims, member.id)
  host.taken = true
end
for _, host in pairs(call.hosts) do
  if host.taken then
    local fields = {'version', text(host.version), 'inbox', text(host.inbox)}
    for slot, held in pairs(host.slots) do
      if held.taken then
        fields[#fields + 1] = 'claimed.' .. slot
        fields[#fields + 1] = text(held.claimed)
      end
    end
    redis.call('HSET', host.keys.host, unpack(fields))
  end
end
finish(cell)

local reply = {'OK', cell.epoch, cell.now_ms, #call.members}
for _, member in ipairs(call.members) do
  reply[#reply + 1] = member.host.name
  reply[#reply + 1] = member.token
  reply[#reply + 1] = expires
  reply[#reply + 1] = 'claimed'
end
return looked_at(call, reply)
