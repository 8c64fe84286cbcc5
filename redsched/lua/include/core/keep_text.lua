-- keep_request(), keep_alternates(): store a long text that claims refer to. Audits extend its time while a claim does.
-- include: fence
local REQUEST_MS, ALTERNATES_MS = 24 * 3600 * 1000, 3600 * 1000

local function keep_request(key, request)
  redis.call('SET', key, request, 'PX', text(REQUEST_MS))
end

local function keep_alternates(key, hosts)
  redis.call('SET', key, hosts, 'PX', text(ALTERNATES_MS))
end
