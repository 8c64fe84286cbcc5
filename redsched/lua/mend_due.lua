#!lua flags=allow-oom
-- mend_due: a deadline is for a claim with a lease, and a chore for one that is there or remembered. Others go. That
-- a claim has come to succeed another one is a chore: it is noted again where that was lost.
-- KEYS  1 meta, 2 changes, 3 hosts, 4 deadlines, 5 chores, 6 events, then the claim of each id
-- ARGV  1 reason, then the ids
-- Reply OK | SAME (nothing was wrong); epoch, now_ms
-- include: fence
-- include: read_hash
-- include: tell
local cell, mended = fence(), 0
for i = 2, #ARGV do
  local claim, known = read_hash(KEYS[5 + i])
  local leased = claim.state == 'claimed' or claim.state == 'starting'
  local changes = leased and 0 or redis.call('ZREM', KEYS[4], ARGV[i])
  if not known then
    changes = changes + redis.call('ZREM', KEYS[5], ARGV[i])
  end
  if claim.former and (claim.state == 'active' or claim.by_ms) then
    changes = changes + redis.call('ZADD', KEYS[5], 'NX', text(cell.now_ms), ARGV[i])
  end
  if changes > 0 then
    mended = mended + 1
    tell(cell, KEYS[6], ARGV[1], {'claim', ARGV[i]})
  end
end
return {mended > 0 and 'OK' or 'SAME', cell.epoch, cell.now_ms}
