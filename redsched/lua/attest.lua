#!lua flags=allow-oom
-- attest: a host tells a new epoch all claims that it knows of, and so opens itself for claims in that epoch.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 host, 7 claims, 8 inbox, 9 leaving, then the claim of
--       each entry, then host, claims, inbox of each rival, then groups, shared pools, gangs and quotas
-- ARGV  1 host, 2 epoch ('' for whichever it is), 3 journal, 4 nonce, 5 number, 6 lease_ms, 7 entries; then each as
--       id and one of
--         held   token, state, project, consumer, digest, rival, group ('' for none), length, field, value ...: the
--                journal says that it runs here; rival: the other host on which the store has it by an earlier
--                placing, or ''; fields as in the claim's hash: amount.<slot>, in.<topology>, and what it is to succeed
--         ended  token: the journal says that it has ended
--         store  nothing more: it stands in KEYS[7], and the journal does not know it
-- Reply outcome, epoch, now_ms, then the ids that the host must drop
--   OK | SAME (had attested to this epoch, or this number was passed) | EPOCH (another epoch: build it anew)
--   UNKNOWN (report first) | OTHER
--   RETRY (KEYS[7] holds an id that is no entry, or a rival is another one: read again; or the groups, pools,
--         gangs and quotas that follow are not in KEYS)
--   CONFLICT (the amounts do not sum to a whole number)
-- Merging: protocol, section 5. Within an epoch the store decides; at a new one the union counts.
-- include: attest_entries
-- include: attest_merge
-- include: attest_sums
-- include: attest_write
-- include: fence
-- include: gang_heard
-- include: mark_over
-- include: order
-- include: passed_things
-- include: publish
-- include: put_fields
-- include: read_hash
-- include: settle
-- include: take_over
-- include: things
local cell = fence()
local host, known = read_hash(KEYS[6])
local function answer(outcome, drop)
  local reply = {outcome, cell.epoch, cell.now_ms}
  for _, id in ipairs(drop or {}) do
    reply[#reply + 1] = id
  end
  return reply
end
if not known then
  return answer('UNKNOWN')
elseif ARGV[2] ~= '' and ARGV[2] ~= cell.epoch then
  return answer('EPOCH')
end
local attested = host.epoch == cell.epoch
local word = speaks(KEYS[6], cell.now_ms, ARGV[3], ARGV[4], tonumber(ARGV[5]))
-- The report that comes with an attestation may carry the same number: once per epoch is once.
local late = word == 'SAME' and tonumber(ARGV[5]) < tonumber(host['agent.number'])
if word == 'OTHER' or (late and not attested) then
  return answer(word)
end
local entries, after_rivals = parse_entries()
if not covers(entries, redis.call('SMEMBERS', KEYS[7])) then
  return answer('RETRY')
end
local restoring = not attested and host.written_off ~= cell.epoch
local merged = merge(entries, ARGV[1], restoring, host)
if attested then
  return answer('SAME', merged.drop)
elseif not merged.complete then
  return answer('RETRY')
end
local things = passed_things(after_rivals)
local lacking = count_anew(things, merged)
if #lacking > 0 then
  return answer('RETRY', lacking)
end
local claimed, unclaimed = sum_claimed(host, merged.kept)
if not claimed then
  return answer('CONFLICT')
end

-- Every check is passed. From here on, only writes.
local version, inbox, told = tonumber(host.version) + 1, tonumber(host.inbox or '0'), {'epoch', cell.epoch}
put_fields(told, claimed, unclaimed)
local changed = changed_things(things)
local more = #merged.taken + #changed
publish(cell, 'host', ARGV[1], version, 'attest', more, told)
for number, entry in ipairs(merged.taken) do
  take_over(cell, entry, more - number)
end
write_things(cell, changed, 'attest')
redis.call('DEL', KEYS[8])
hear_lost(things, merged)
bury_ended(cell, things, merged)
hear_members(cell, things, merged)
for _, entry in ipairs(merged.kept) do
  inbox = keep(cell, entry, inbox, tonumber(ARGV[6]))
end
redis.call('HSET', KEYS[6], 'version', text(version), 'epoch', cell.epoch, 'inbox', text(inbox),
  'agent.journal', ARGV[3], 'agent.nonce', ARGV[4], 'agent.number', ARGV[5])
write_attested_host(host, merged.drop, claimed, unclaimed)
for _, thing in ipairs(changed) do
  if thing.kind == 'pool' then
    mark_over(thing.key)
  end
end
count_heard(cell, host)
finish(cell)
return answer('OK', merged.drop)
