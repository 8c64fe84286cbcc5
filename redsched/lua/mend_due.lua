#!lua flags=allow-oom
-- mend_due: a deadline is for a claim with a lease, and a chore for one that is there or remembered; remove all others.
-- A claim that has come to succeed another one has a chore: note it again where it was lost.
-- KEYS meta changes hosts deadlines chores events ...
--   then the claim of each id
-- ARGV reason ...
--   then the claim ids
-- Reply OK | SAME (nothing was wrong); epoch, now_ms
-- include: fence
-- include: in_chunks
-- include: leased
-- include: read_hash
-- include: tell
local cell = fence()
local chores, due, done, mended = {}, {}, {}, {}
for i = 2, #ARGV do
  local id, claim, known = ARGV[i], read_hash(KEYS[5 + i])
  local deadline, chore = redis.call('ZSCORE', KEY.deadlines, id), redis.call('ZSCORE', KEY.chores, id)
  local overdue = deadline and not LEASED[claim.state]
  local wanted = claim.former and (claim.state == 'active' or claim.by_ms) and not chore
  if wanted then
    chores[#chores + 1], chores[#chores + 2] = text(cell.now_ms), id
  end
  if overdue then
    due[#due + 1] = id
  end
  if chore and not known then
    done[#done + 1] = id
  end
  if wanted or overdue or (chore and not known) then
    mended[#mended + 1] = id
  end
end

-- Every check is passed. From here on, only writes: what is removed last may be the last of its key.
in_chunks('ZADD', KEY.chores, chores)
in_chunks('ZREM', KEY.chores, done)
in_chunks('ZREM', KEY.deadlines, due)
for _, id in ipairs(mended) do
  tell(cell, KEY.events, ARG.reason, {'claim', id})
end
return {#mended > 0 and 'OK' or 'SAME', cell.epoch, cell.now_ms}
