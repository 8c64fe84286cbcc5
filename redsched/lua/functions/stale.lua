-- rs_stale: hosts whose lease has ended, the longest ago first.
-- include: pages
-- include: people
register('rs_stale', ' [CURSOR]', 0, 'Hosts whose lease has ended, longest ago first.', function(cell, arguments, say)
  local found, rest = page_after(cell.prefix .. 'hosts', cell.now_ms, arguments[1])
  for _, name in ipairs(found) do
    local key = cell.prefix .. 'host:' .. name
    local host = redis.call('HMGET', key, 'alive_until_ms', 'epoch', 'status', 'claims')
    local ended = host[2] == 'lost' and 'was written off' or 'lease ' .. ends(cell, host[1])
    say('%-24s %s, %s, %s claims', name, ended, host[3] or '?', host[4] or '0')
  end
  say('hosts without a lease: %d', #found)
  if rest then
    say_next(cell, say, rest)
  end
end)
