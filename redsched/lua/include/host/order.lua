-- speaks(): return nil if this agent may write this host, else the outcome to answer.
--
-- A journal identifies an agent; its reports carry a number that grows over restarts of its process (nonce). So a late
-- copy of a report, and a clone that runs on a copy of the journal, both carry a number that was seen before. Another
-- journal takes the host over only when its lease has lapsed.
local AGENT_FIELDS = {'agent.journal', 'agent.nonce', 'agent.number', 'alive_until_ms'}

local function speaks(host_key, now_ms, journal, nonce, number)
  local agent = redis.call('HMGET', host_key, unpack(AGENT_FIELDS))
  if not agent[1] then
    return nil
  end
  if agent[1] ~= journal then
    return tonumber(agent[4] or '0') > now_ms and agent[1] ~= '' and 'NOT_OWNER' or nil
  end
  if journal == '' or number > tonumber(agent[3]) then
    return nil
  end
  return agent[2] == nonce and 'ALREADY_DONE' or 'NOT_OWNER'
end
