#!lua
-- bind: bind a claim id or a server group to one of several cells: an id while its outcome is being decided, a group
-- by its first claim.
-- KEYS binding
--   The key lies outside every cell, so there is no fence. A lost binding is created again.
-- ARGV cell former_cell keep_ms
--   former_cell  take the binding over from this cell; '' for none
--   keep_ms      how long the binding is kept; 0: for ever
-- Reply OK, then the cell that it is bound to now
local bound = redis.call('GET', KEY.binding)
if not bound or bound == ARG.former_cell then
  redis.call('SET', KEY.binding, ARG.cell)
  if ARG.keep_ms ~= '0' then
    redis.call('PEXPIRE', KEY.binding, ARG.keep_ms)
  end
  bound = ARG.cell
end
return {'OK', bound}
