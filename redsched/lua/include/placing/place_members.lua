-- place_members(): place each member of a call on the first of its candidates that fits, or none of them. `write`
-- stores the new state of a member. Returns the reply.
-- include: claim_candidates
-- include: claim_write
-- include: fence
-- include: publish
-- include: quota_steps
local function placed_reply(cell, call, expires, objects)
  local reply, last = {'OK', cell.epoch, cell.now_ms, call.member_count}, 4
  for _, member in ipairs(call.members) do
    reply[last + 1], reply[last + 2], reply[last + 3] = member.host.name, member.token, expires
    reply[last + 4], reply[last + 5] = 'claimed', member.candidate
    last = last + 5
  end
  reply[last + 1] = objects
  return reply
end

-- Note with each member which of several requests it is for, if they share this call.
local function note_origins(cell, members)
  local number = 0
  for origin in string.gmatch(cell.origin, '[^\n]*\n[^\n]*\n') do
    number = number + 1
    members[number].origin = origin
  end
end

local function place_members(cell, call, write)
  for number, member in ipairs(call.members) do
    member.host = first_fit(cell, call, member)
    if not member.host then
      return looked_at(call, {'FULL', cell.epoch, cell.now_ms, number})
    end
  end

  local quota = call.quota and quota_steps()
  local over = quota and quota.over(cell, call)
  if over then
    return over
  end

  -- Every check has passed. From here on, only writes.
  local objects = call.conditions and call.conditions.changed_objects(call.objects) or {}
  if cell.origin ~= '' and #call.members > 1 then
    note_origins(cell, call.members)
  end
  local expires = text(cell.now_ms + ARG.lease_ms)
  local shares_note = ARG.noted == '1' and #call.members > 1
  for number, member in ipairs(call.members) do
    local entry_id = append_placed(cell, member, #call.members - number + #objects)
    member.decision = shares_note and call.members[1].token or nil
    write(cell, member, expires, entry_id, call)
  end
  for _, host in pairs(call.hosts) do
    if host.placed > 0 then
      redis.call('HSET', host.key, 'version', text(host.version), 'inbox', text(host.inbox), unpack(host.changed))
    end
  end
  if call.conditions then
    call.conditions.write_objects(cell, objects, 'claimed')
  end
  if quota then
    quota.write(cell, call.quota)
  end
  if ARG.gang == '1' or ARG.request ~= '' then
    write_beside(call)
  end
  finish(cell)

  local reply = placed_reply(cell, call, expires, #objects)
  if call.conditions then
    call.conditions.append_objects(objects, reply)
  end
  return looked_at(call, reply)
end
