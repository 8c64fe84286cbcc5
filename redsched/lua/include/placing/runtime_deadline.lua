-- runtime_deadline(): return when the host stops the work of a claim that is made or unshelved now (Unix, ms), as text,
-- if it may run for `max_runtime_s`.
-- include: text
local function runtime_deadline(cell, max_runtime_s)
  return text(cell.now_ms + max_runtime_s * 1000)
end
