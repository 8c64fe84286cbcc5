-- rs_stale: hosts whose lease has ended, the longest ago first.
-- include: pages
-- include: people
register('rs_stale', ' [CURSOR]', 0, 'Hosts whose lease has ended, longest ago first.', function(cell, arguments, say)
  local from = page_from(arguments[1])
  local found = redis.call('ZRANGE', cell.prefix .. 'hosts', '-inf', cell.now_ms, 'BYSCORE', 'LIMIT', from, PAGE + 1)
  for number = 1, math.min(#found, PAGE) do
    local key = cell.prefix .. 'host:' .. found[number]
    local host = redis.call('HMGET', key, 'alive_until_ms', 'epoch', 'status', 'claims')
    local ended = host[2] == 'lost' and 'was written off' or 'lease ' .. ends(cell, host[1])
    say('%-24s %s, %s, %s claims', found[number], ended, host[3] or '?', host[4] or '0')
  end
  say('hosts without a lease: %d', math.min(#found, PAGE))
  if #found > PAGE then
    say_next(cell, say, from + PAGE)
  end
end)
