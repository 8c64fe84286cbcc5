#!lua
-- keep: store again a text that claims refer to and that the store has lost: a request as canonical JSON, or a list of
-- alternates. Exported cells and agents have copies.
-- KEYS meta changes hosts text
-- ARGV text
-- Reply OK; epoch, now_ms
-- include: fence
-- include: keep_text
local cell = fence()
keep_text(KEY.text, ARG.text)
return {'OK', cell.epoch, cell.now_ms}
