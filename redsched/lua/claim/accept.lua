#!lua flags=allow-oom
-- accept: the host has taken a placement up and is about to start its work. claimed -> starting, with a fresh lease.
-- KEYS meta changes hosts deadlines chores shelved claim ...
-- ARGV host id token lease_ms entry_id
-- Further keys: host, claims and inbox of the host; passed.lua. entry_id: of the inbox entry, or ''.
-- Reply OK | SAME (was taken up before) | ENDING | GONE | STALE | UNKNOWN | ATTEST; epoch, now_ms, state
-- In every case but ATTEST the hint has served, and is deleted.
-- include: about
local it = about()
local placement = it.placement
local WORDS = {ending = 'ENDING', starting = 'SAME', active = 'SAME'}
local no = it.no or WORDS[placement.state]
if no then
  if no ~= 'ATTEST' then
    drop_hint(it, ARG.entry_id)
  end
  return answer_about(it, no, placement and placement.state or '')
end
placement.state, placement.hint = 'starting', 'none'
placement.expires_at_ms = text(it.cell.now_ms + tonumber(ARG.lease_ms))
return commit_about(it, 'OK', 'starting')
