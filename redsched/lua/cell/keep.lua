#!lua
-- keep: store again a text that claims refer to and that the store has lost: a request as canonical JSON, or a list of
-- alternates. Exported cells and agents have copies.
-- KEYS meta changes hosts text
-- ARGV text for_ms
-- Reply OK; epoch, now_ms
-- include: fence
local cell = fence()
redis.call('SET', KEY.text, ARG.text, 'PX', ARG.for_ms)
return {'OK', cell.epoch, cell.now_ms}
