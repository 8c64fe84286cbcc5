-- keep_decisions(): store how the hosts were chosen that the members of a call have got. One text serves all of them:
-- the time of the decision, then for each member its token, which of its candidates was taken and the number of its
-- line, then the lines. Of several members, each has the name of the key: one of them may be placed again alone.
local DECISIONS_MS = '3600000'

-- Return the name of the text of a call's members.
local function decisions_name(call)
  return string.match(KEYS[8 + call.member_count], ':decision:(.+)$')
end

local function keep_decisions(call)
  local key, first = KEYS[8 + call.member_count], call.members[1]
  if call.member_count == 1 then
    local head = ARG.now_ms .. ' ' .. first.token .. ':' .. first.candidate .. ':'
    redis.call('SET', key, head .. ARG.decisions, 'PX', DECISIONS_MS)
    return
  end
  local numbers, lines = string.match(ARG.decisions, '^([^\n]*)(.*)$')
  local head, members, number = {ARG.now_ms}, call.members, 0
  for line in string.gmatch(numbers, '%d+') do
    number = number + 1
    local member = members[number]
    head[number + 1] = member.token .. ':' .. member.candidate .. ':' .. line
  end
  redis.call('SET', key, table.concat(head, ' ') .. lines, 'PX', DECISIONS_MS)
end
