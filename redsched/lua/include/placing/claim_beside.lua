-- write_gang_and_request(): write the gang that the claims of a call form, and the request that they came from.
-- include: in_chunks
-- include: keep_text
local function write_gang_and_request(call)
  local has_request = ARG.request ~= ''
  if has_request then
    keep_request(KEYS[#KEYS], ARG.request)
  end
  if ARG.gang ~= '1' then
    return
  end
  local fields = {'waiting', text(#call.members)}
  for _, member in ipairs(call.members) do
    fields[#fields + 1], fields[#fields + 2] = 'member.' .. member.id, member.host.name
  end
  in_chunks('HSET', KEYS[#KEYS - (has_request and 1 or 0)], fields)
end
