#!lua
-- keep: store again a request that was lost, from an exported cell or from an agent, so that its claims can be placed
-- again.
-- KEYS meta changes hosts request
-- ARGV text for_ms
--   text  the request as canonical JSON
-- Reply OK; epoch, now_ms
-- include: fence
local cell = fence()
redis.call('SET', KEY.request, ARG.text, 'PX', ARG.for_ms)
return {'OK', cell.epoch, cell.now_ms}
