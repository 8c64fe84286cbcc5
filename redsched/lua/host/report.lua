#!lua flags=allow-oom
-- report: replace the fields of a host that its agent owns, and nothing else: a report can change no claim but the zone
-- and labels by which its group counts it, and only to those of the host. A host that has not attested to this epoch
-- gets no new claims until attest.lua has run. A full store accepts reports, because an agent whose report is refused
-- could neither attest nor release anything.
-- KEYS meta changes hosts host attributes removed deadlines expected claims ...
-- Further keys, if the zone or a label has changed: the claims of the host, and their groups; passed.lua.
-- ARGV host lease_ms journal nonce number joins count ...
--   journal, nonce, number  '', '', 0 without an agent
--   joins                   the status of a new host for which none was declared: enabled or disabled
--   count                   the number of values of the host; then its field, value ..., then those of its attributes
-- Reply OK | ALREADY_DONE (this number or a later one was seen) | NOT_OWNER (another agent owns the host); epoch,
--   now_ms, attested (0 or 1), version; or RETRY (keys are missing, whose names follow), epoch, now_ms
-- include: compare
-- include: fence
-- include: finish_declared
-- include: in_chunks
-- include: mark_over
-- include: moved_members
-- include: order
-- include: publish
-- include: read_hash
-- include: with_rest
local OWNED = {capacity = true, external = true, total = true, reserved = true, ratio = true, min = true, max = true,
  step = true}
-- Amounts are absent because they are checked again when they are claimed, and metrics because they always change.
local DECIDED_ON = {zone = true, trait = true, label = true, pool = true}
local cell = fence(KEY.deadlines)
local old, known = read_hash(KEY.host)
local number = tonumber(ARG.number)
local word = speaks(old, cell.now_ms, ARG.journal, ARG.nonce, number)
local attested = old.epoch == cell.epoch and 1 or 0
if word then
  return {word, cell.epoch, cell.now_ms, attested, old.version or ''}
end

local changed, split = {}, 7 + tonumber(ARG.count)
local function owned(field)
  return OWNED[string.match(field, '^(%l+)%.')] or field == 'agent.version' or field == 'warnings'
end
local host_set, host_gone = compare(old, 8, split, owned, changed)
local attributes = read_hash(KEY.attributes)
local attributes_set, attributes_gone = compare(attributes, split + 1, #ARGV, function() return true end, changed)

local anew = false
for i = 1, old.epoch and #changed or 0, 2 do
  anew = anew or DECIDED_ON[string.match(changed[i], '^[^.]+')]
end
local members = moved_members(cell, old, attributes, changed)
if members and members.lacking then
  return with_rest({'RETRY', cell.epoch, cell.now_ms}, members.lacking)
end

local until_ms = text(cell.now_ms + tonumber(ARG.lease_ms))
if not known then
  local removed = redis.call('GET', KEY.removed)
  if removed then
    append(host_set, 'lost_token', removed)
  end
end
if not old.since then
  append(host_set, 'since', cell.epoch)
end
local expected = not old.status and redis.call('HGET', KEY.expected, ARG.host)
if not old.status then
  local status, reason = string.match(expected or ARG.joins, '^(%l+) ?(.*)$')
  if not expected and status ~= 'enabled' then
    reason = 'new hosts join disabled: enable it once checked'
  end
  for field, value in pairs({status = status, status_reason = reason ~= '' and reason or nil}) do
    append(host_set, field, value)
    append(changed, field, value)
  end
end
if old.alive ~= '1' then
  append(host_set, 'alive', '1')
  append(changed, 'alive', '1')
end
-- A new host's version starts at the current seq, so that a host with a reused name is newer than the former one.
local version = old.version or text(cell.seq)
if #changed > 0 then
  version = text(tonumber(version) + 1)
  publish(cell, 'host', ARG.host, version, old.alive == '0' and 'up' or 'report',
    members and members.number or 0, changed, '')
end
if members then
  members.write()
end
redis.call('HSET', KEY.host, 'version', version, 'alive_until_ms', until_ms, 'lease_ms', ARG.lease_ms,
  'agent.journal', ARG.journal, 'agent.nonce', ARG.nonce, 'agent.number', text(number))
in_chunks('HSET', KEY.host, host_set)
in_chunks('HDEL', KEY.host, host_gone)
in_chunks('HSET', KEY.attributes, attributes_set)
in_chunks('HDEL', KEY.attributes, attributes_gone)
for i = 1, #host_set, 2 do
  old[host_set[i]] = host_set[i + 1]
end
for _, field in ipairs(host_gone) do
  old[field] = nil
end
old.version = version
version = mark_over(cell, 'host', ARG.host, KEY.host, old)
redis.call('ZADD', KEY.hosts, until_ms, ARG.host)
local done = anew and finish_declared or finish
done(cell)
if expected then
  redis.call('HDEL', KEY.expected, ARG.host)
end
return {'OK', cell.epoch, cell.now_ms, attested, version}
