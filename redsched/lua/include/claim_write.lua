-- What claim.lua writes once every member has a place. write_claim(): one claim and its entry of the feed; `more`
-- follow. write_claimed_host(): what a host holds now, once however many of the members it took. write_beside(): the
-- gang that the claims of a call are, and the request that they came from.
-- include: claim_again
-- include: claim_things
-- include: fence
-- include: hint
-- include: in_chunks
-- include: publish
local KEPT_MS = 24 * 3600 * 1000 -- of a request: as long again as often as a claim that names it is looked at

-- The alternates that are kept with the claims of a call: those that none of them got.
local function alternates_left(call)
  local chosen, left = {}, {}
  for _, member in ipairs(call.members) do
    chosen[member.host.name] = true
  end
  for name in string.gmatch(call.alternates, '%S+') do
    if not chosen[name] and #left < call.most_alternates then
      left[#left + 1] = name
    end
  end
  return table.concat(left, ' ')
end

local function write_claim(cell, call, member, expires, more)
  local host = member.host
  host.version = host.version + 1
  host.claims_now = host.claims_now or text(host.claims + host.placed)
  host.starting_now = host.starting_now or text(host.starting + host.placed)
  local fields = {'claim', member.id, 'claims', host.claims_now, 'starting', host.starting_now}
  for _, entry in ipairs(member.amounts) do
    fields[#fields + 1] = entry.claimed
    fields[#fields + 1] = text(host.slots[entry.slot].claimed)
  end
  publish(cell, 'host', host.name, host.version, 'claimed', more, fields)
  member.token = cell.epoch .. '.' .. text(cell.seq)
  host.inbox = host.inbox + 1
  local entry_id = hint(cell, host.keys.inbox, host.inbox, 'claim', member.id, member.token)
  redis.call('SADD', host.keys.claims, member.id)
  if member.again then
    write_again(cell, call, member, expires, entry_id)
    return
  end
  redis.call('ZADD', KEY.deadlines, expires, member.id)
  local claim = {'host', host.name, 'state', 'claimed', 'project', call.project, 'consumer', call.consumer,
    'digest', call.digest, 'claimed_at_ms', text(cell.now_ms), 'expires_at_ms', expires, 'token', member.token,
    'inbox_id', entry_id}
  for _, entry in ipairs(member.amounts) do
    claim[#claim + 1] = 'amount.' .. entry.slot
    claim[#claim + 1] = text(entry.amount)
  end
  if call.things then
    add_conditions(claim, member)
  end
  if call.mark ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'mark', call.mark
  end
  if call.on_exit ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'on_exit', call.on_exit
  end
  if call.gang then
    claim[#claim + 1], claim[#claim + 2] = 'gang', call.members[1].id
  end
  if call.gang_members ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'gang_members', call.gang_members
  end
  if call.max_attempts ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'max_attempts', call.max_attempts
  end
  if call.alternates ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'alternates', alternates_left(call)
  end
  redis.call('HSET', member.key, unpack(claim))
  if member.reopened then
    redis.call('HDEL', member.key, 'why', 'voided_at_ms', 'closed', 'closed_why')
    redis.call('PERSIST', member.key)
  end
end

local function write_claimed_host(host)
  local fields = {'version', text(host.version), 'inbox', text(host.inbox), 'claims', host.claims_now,
    'starting', host.starting_now}
  for slot, held in pairs(host.slots) do
    if held.taken then
      fields[#fields + 1] = 'claimed.' .. slot
      fields[#fields + 1] = text(held.claimed)
    end
  end
  redis.call('HSET', host.keys.host, unpack(fields))
end

local function write_beside(call)
  local request = ARGV[12] ~= ''
  if call.gang then
    local fields = {'waiting', text(#call.members)}
    for _, member in ipairs(call.members) do
      fields[#fields + 1] = 'member.' .. member.id
      fields[#fields + 1] = member.host.name
    end
    in_chunks('HSET', KEYS[#KEYS - (request and 1 or 0)], fields)
  end
  if request then
    redis.call('SET', KEYS[#KEYS], ARGV[12], 'PX', text(KEPT_MS))
  end
end
