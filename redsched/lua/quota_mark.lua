#!lua
-- quota_mark: what claims of a project hold now; from here on their end is told to its ledger.
-- KEYS  1 meta, 2 changes, 3 hosts, then the claims
-- ARGV  1 project
-- Reply OK, epoch, now_ms, then of each claim that has not ended its number (from 1), origin, length, slot, amount ...
-- include: fence
-- include: read_hash
local cell = fence()
local reply = {'OK', cell.epoch, cell.now_ms}
for number = 1, #KEYS - 3 do
  local claim, known = read_hash(KEYS[3 + number])
  if known and claim.state ~= 'ended' and claim.project == ARGV[1] then
    redis.call('HSET', KEYS[3 + number], 'quota', '1')
    reply[#reply + 1] = number
    reply[#reply + 1] = claim.origin or ''
    local length = #reply + 1
    reply[length] = 0
    for field, amount in pairs(claim) do
      local slot = string.match(field, '^amount%.(.+)$')
      if slot then
        reply[#reply + 1] = slot
        reply[#reply + 1] = amount
        reply[length] = reply[length] + 1
      end
    end
  end
end
return reply
