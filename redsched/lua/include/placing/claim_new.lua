-- write_new(): write the hash of a new claim, its deadline and its alternates.
-- include: fence
-- include: keep_text

-- Return the alternates to store with the claims of a call: hosts that none of its members got.
local function alternates_left(call)
  local chosen, left, most = {}, {}, tonumber(call.most_alternates)
  for _, member in ipairs(call.members) do
    chosen[member.host.name] = true
  end
  for name in string.gmatch(call.alternates, '%S+') do
    if not chosen[name] and #left < most then
      left[#left + 1] = name
    end
  end
  return left
end

local function write_new(cell, call, member, expires, entry_id)
  local host = member.host
  redis.call('ZADD', KEY.deadlines, expires, member.id)
  local claim = {'host', host.name, 'state', 'claimed', 'project', call.project, 'consumer', call.consumer,
    'digest', call.digest, 'claimed_at_ms', text(cell.now_ms), 'expires_at_ms', expires, 'token', member.token,
    'inbox_id', entry_id}
  for _, entry in ipairs(member.amounts) do
    claim[#claim + 1] = 'amount.' .. entry.slot
    claim[#claim + 1] = text(entry.amount)
  end
  if call.conditions then
    call.conditions.add_to_claim(claim, member)
  end
  if call.call_id ~= '' then
    claim[#claim + 1], claim[#claim + 2] = 'call_id', call.call_id
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
  local alternates = member.alternates_key and alternates_left(call) or {}
  if #alternates > 0 then
    claim[#claim + 1], claim[#claim + 2] = 'alternates', text(#alternates)
    keep_alternates(member.alternates_key, table.concat(alternates, ' '))
  end
  redis.call('HSET', member.key, unpack(claim))
  if member.reopened then
    redis.call('HDEL', member.key, 'end_reason', 'voided_at_ms', 'closed', 'closed_reason')
    redis.call('PERSIST', member.key)
  end
end
