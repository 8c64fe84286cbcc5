#!lua flags=allow-oom
-- bind_host: bind a host's name to one of several cells, or free it. A machine must not be offered in two of them.
-- KEYS home
--   The key lies outside every cell, so there is no fence. A lost binding is created again by the host's next report.
-- ARGV cell former_cell
--   cell         '' frees the name, if it is bound to former_cell
--   former_cell  take the name over from this cell; '' for none
-- Reply OK, then the cell that it is bound to now ('': none), and whether this call has changed that
local bound = redis.call('GET', KEY.home)
if bound and bound ~= ARG.former_cell then
  return {'OK', bound, 0}
elseif ARG.cell == '' then
  return {'OK', '', redis.call('DEL', KEY.home)}
end
redis.call('SET', KEY.home, ARG.cell)
return {'OK', ARG.cell, 1}
