#!lua
-- keep: put back a request that the store has lost, from an exported cell or by an agent, so that claims can be placed
-- anew.
-- KEYS meta changes hosts request
-- ARGV text for_ms
--   text  the request as canonical JSON
-- Reply OK; epoch, now_ms
-- include: fence
local cell = fence()
redis.call('SET', KEY.request, ARG.text, 'PX', ARG.for_ms)
return {'OK', cell.epoch, cell.now_ms}
