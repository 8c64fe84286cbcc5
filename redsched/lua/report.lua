#!lua flags=allow-oom
-- report: a host's word about itself replaces all that its agent owns, and nothing else: no report can touch a claim.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 host, 5 facts, 6 removed, 7 deadlines
-- ARGV  1 host, 2 lease_ms, 3 journal, 4 nonce, 5 number ('' '' 0 without an agent), 6 number of values of the host,
--       then its field, value ... and then the field, value ... of its facts
-- Reply OK | SAME (this number was passed) | OTHER (another agent speaks); epoch, now_ms, attested (0 or 1), version
-- A report whose host has not attested to this epoch is kept, and opens nothing: attest.lua does that.
-- A full store takes it: an agent whose report is refused neither attests nor gives anything back.
-- include: fence
-- include: publish
-- include: read_hash
-- include: in_chunks
-- include: compare
-- include: whole
-- include: order
-- include: mark_over
-- include: finish_declared
local OWNED = {capacity = true, external = true, total = true, reserved = true, ratio = true, min = true, max = true,
  step = true}
-- Amounts are checked again when they are claimed, and a metric is of the moment.
local DECIDED_ON = {zone = true, trait = true, label = true, pool = true}
local cell = fence(KEYS[7])
local old, known = read_hash(KEYS[4])
local number = tonumber(ARGV[5])
local word = speaks(KEYS[4], cell.now_ms, ARGV[3], ARGV[4], number)
local attested = old.epoch == cell.epoch and 1 or 0
if word then
  return {word, cell.epoch, cell.now_ms, attested, old.version or ''}
end

local changed, split = {}, 6 + tonumber(ARGV[6])
local function owned(field)
  return OWNED[string.match(field, '^(%l+)%.')] or false
end
local host_set, host_gone = compare(old, 7, split, owned, changed)
local facts_set, facts_gone = compare(read_hash(KEYS[5]), split + 1, #ARGV, function() return true end, changed)

local anew = false
for i = 1, old.epoch and #changed or 0, 2 do
  anew = anew or DECIDED_ON[string.match(changed[i], '^[^.]+')]
end

local until_ms = text(cell.now_ms + tonumber(ARGV[2]))
if not known then
  local removed = redis.call('GET', KEYS[6])
  if removed then
    append(host_set, 'lost_token', removed)
  end
  append(host_set, 'since', cell.epoch)
  append(host_set, 'status', 'enabled')
  append(changed, 'status', 'enabled')
end
if old.alive ~= '1' then
  append(host_set, 'alive', '1')
  append(changed, 'alive', '1')
end
-- A new host's version starts at the present seq, so that a name which comes back is newer than what it was before.
local version = old.version or text(cell.seq)
if #changed > 0 then
  version = text(tonumber(version) + 1)
  publish(cell, 'host', ARGV[1], version, 'report', 0, changed)
end
redis.call('HSET', KEYS[4], 'version', version, 'alive_until_ms', until_ms, 'lease_ms', ARGV[2],
  'agent.journal', ARGV[3], 'agent.nonce', ARGV[4], 'agent.number', text(number))
in_chunks('HSET', KEYS[4], host_set)
in_chunks('HDEL', KEYS[4], host_gone)
in_chunks('HSET', KEYS[5], facts_set)
in_chunks('HDEL', KEYS[5], facts_gone)
mark_over(KEYS[4])
redis.call('ZADD', KEYS[3], until_ms, ARGV[1])
local done = anew and finish_declared or finish
done(cell)
return {'OK', cell.epoch, cell.now_ms, attested, version}
