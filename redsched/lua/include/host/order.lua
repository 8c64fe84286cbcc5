-- speaks(): return nil if this agent may write this host, else the outcome to answer.
--
-- A journal identifies an agent; its reports carry a number that grows over restarts of its process (nonce). So a late
-- copy of a report, and a clone that runs on a copy of the journal, both carry a number that was seen before. Another
-- journal takes the host over only when its lease has lapsed.
-- `host` is the host's hash.
local function speaks(host, now_ms, journal, nonce, number)
  local owner = host['agent.journal']
  if not owner then
    return nil
  end
  if owner ~= journal then
    return tonumber(host.alive_until_ms or '0') > now_ms and owner ~= '' and 'NOT_OWNER' or nil
  end
  if journal == '' or number > tonumber(host['agent.number']) then
    return nil
  end
  return host['agent.nonce'] == nonce and 'ALREADY_DONE' or 'NOT_OWNER'
end
