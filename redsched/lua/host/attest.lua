#!lua flags=allow-oom
-- attest: a host reports, in a new epoch, all claims that it knows, and from then on gets new claims in that epoch.
-- KEYS meta changes hosts deadlines reconcile shelved host claims inbox draining attributes ...
-- ARGV host epoch journal nonce number lease_ms entries ...
-- Further keys: the claim of each entry, then what they count in; passed.lua.
-- epoch: '' for the current one. entries: the number of entries that follow; each has an id and one of
--   held   placed, token, root, state, was_active, length, field, value ...: the journal has the placement as running
--          here; the fields are those of the claim and of this placement, as in the claim's hash
--   ended  placed, token, end_reason, was_active, ended_ago_ms: the journal has the placement as ended; end_reason is
--          '' if the journal has none, and so is ended_ago_ms if it is unknown. If the store has lost this end with the
--          placement, the claim has ended by it.
--   was_active: 1 if a placement that has ended or is ending had been active, and was not stopped because its gang
--   failed
--   store  nothing more: the claim is in KEY.claims, and the journal does not have it
-- Reply outcome, epoch, now_ms, then the names (`placed`) of placements that the host must drop
--   OK | ALREADY_DONE (it has attested to this epoch, or a later number was seen) | WRONG_EPOCH (another epoch: build
--   the call again)
--   UNKNOWN (report first) | NOT_OWNER
--   RETRY (KEY.claims holds an id that has no entry; or keys are missing, whose names follow)
--   CONFLICT (the amounts do not sum to a whole number up to the largest amount, here or in what else counts them)
-- It renews the host's lease: a host that has just attested must not be taken for down until its next heartbeat.
-- Groups count what it holds by the zone and labels that it has now: a journal has those of the claim's time.
-- Merging: docs/architecture/attestation.md. Once a host has attested, the store decides; until then, a placement
-- counts if the store or the journal has it.
-- include: attest_entries
-- include: attest_merge
-- include: attest_write
-- include: beyond_range
-- include: commit
-- include: ids_on_host
-- include: mark_over
-- include: order
-- include: put_fields
-- include: recount_held
-- include: remove_members
-- include: renew_lease
-- include: settle
-- include: with_rest
local cell = fence(KEY.deadlines)
local host, known = read_hash(KEY.host)
local function answer(outcome, rest)
  return with_rest({outcome, cell.epoch, cell.now_ms}, rest)
end
if not known then
  return answer('UNKNOWN')
elseif ARG.epoch ~= '' and ARG.epoch ~= cell.epoch then
  return answer('WRONG_EPOCH')
end
local attested = host.epoch == cell.epoch
local word = speaks(host, cell.now_ms, ARG.journal, ARG.nonce, tonumber(ARG.number))
-- The report that comes with an attestation may carry the same number, so only a lower number is late: attesting twice
-- in an epoch has no further effect.
local late = word == 'ALREADY_DONE' and tonumber(ARG.number) < tonumber(host['agent.number'])
if word == 'NOT_OWNER' or (late and not attested) then
  return answer(word)
end
local entries = parse_entries(8)
local ids = ids_on_host(named_in(entries))
if not ids then
  return answer('RETRY')
end
local merged = merge(cell, entries, host, not attested)
if attested then
  return answer('ALREADY_DONE', merged.drop)
end
local held = held_here(cell, merged, host, tonumber(ARG.lease_ms))
local claimed, unclaimed = host_fields(host, held)
if not claimed then
  return answer('CONFLICT')
end
local objects = passed(12 + #entries)
-- The host's sums are written here as absolute numbers, and not as a difference.
leave_to_script(objects, KEY.host, ARG.host)
local note_groups = recount_held(cell, merged.claims, host.zone, objects)
local lacking = prepare(merged.claims, objects)
if #lacking > 0 then
  return answer('RETRY', lacking)
elseif beyond_range(merged.claims, objects) then
  return answer('CONFLICT')
end

-- Every check has passed. From here on, only writes.
local version = renew_lease(cell, ARG.host, tonumber(host.version), host.alive,
  tonumber(host.lease_ms or ARG.lease_ms)) + 1
local fields = {'epoch', cell.epoch}
put_fields(fields, claimed, unclaimed)
publish(cell, 'host', ARG.host, version, 'attest', count_beside(merged.claims, objects), fields)
local joining, leaving = {}, {}
do
  local before, now = {}, {}
  for _, id in ipairs(ids) do
    before[id] = true
  end
  for _, entry in ipairs(held) do
    now[entry.claim.id] = true
  end
  for id in pairs(now) do
    joining[#joining + 1] = not before[id] and id or nil
  end
  for id in pairs(before) do
    leaving[#leaving + 1] = not now[id] and id or nil
  end
end
local inbox = write_notifications(cell, held, tonumber(host.inbox or '0'))
in_chunks('SADD', KEY.claims, joining)
redis.call('HSET', KEY.host, 'version', text(version), 'epoch', cell.epoch, 'inbox', text(inbox),
  'agent.journal', ARG.journal, 'agent.nonce', ARG.nonce, 'agent.number', ARG.number)
write_attested_host(host, merged.drop, claimed, unclaimed)
local mark_groups = note_groups(objects.changed)
write_claims(cell, merged.claims, objects, new_due(), {})
remove_members('SREM', KEY.claims, leaving)
host.version = text(version)
mark_over(cell, 'host', ARG.host, KEY.host, host)
for _, object in ipairs(objects) do
  if object.kind == 'pool' and not object.ends then
    mark_over(cell, 'pool', object.own_name, object.key)
  end
end
mark_groups()
count_attested(cell, host)
finish(cell)
return answer('OK', merged.drop)
