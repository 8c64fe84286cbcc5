-- keep_text(): store a long text that claims refer to, a request or a list of alternates, for a day. Audits extend this
-- while a claim refers to it.
-- include: fence
local KEPT_MS = 24 * 3600 * 1000

local function keep_text(key, value)
  redis.call('SET', key, value, 'PX', text(KEPT_MS))
end
