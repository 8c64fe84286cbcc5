-- set_limits(): have the ledger hold the limits in ARGV[first] on (field, value ...), which were declared as `token`
-- says (epoch and version of the first cell's declaration), unless it holds later ones.
-- include: in_chunks
-- include: token
local function set_limits(ledger, token, first)
  if ledger.limits_token and not newer(token, ledger.limits_token) then
    return false
  end
  local gone = {}
  for field in pairs(ledger) do
    if string.find(field, '^limit%.') then
      gone[#gone + 1] = field
    end
  end
  in_chunks('HDEL', KEYS[2], gone)
  redis.call('HSET', KEYS[2], 'limits_token', token)
  for i = first, #ARGV, 2 do
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  return true
end
