-- write_new(): write the hash of a new claim, its deadline and its alternates.
-- include: fence
-- include: origin
local function write_options(...)
  -- include: claim_options
  write_further_fields(...)
end

local function write_new(cell, member, expires, entry_id, call)
  redis.call('ZADD', KEY.deadlines, expires, member.id)
  local stored = member.amounts.stored
  if member.decision then
    stored = {'decision', member.decision, unpack(stored)}
  end
  if ARG.owner ~= '' then
    stored = {'owner', ARG.owner, unpack(stored)}
  end
  redis.call('HSET', member.key, 'host', member.host.name, 'state', 'claimed', 'project', ARG.project,
    'digest', ARG.digest, 'claimed_at_ms', text(cell.now_ms), 'expires_at_ms', expires,
    'token', member.token, 'inbox_id', entry_id, unpack(with_origin(cell, stored, member.origin)))
  local options = ARG.call_id .. ARG.alternates .. ARG.max_runtime_s
  if options ~= '' or ARG.gang == '1' or call.conditions or member.reopened then
    write_options(cell, call, member)
  end
end
