-- rs_changes: the latest changes of the cell, newest first.
-- include: pages
-- include: people
local function say_change(cell, say, id, flat)
  local entry = {}
  for number = 1, #flat, 2 do
    entry[flat[number]] = flat[number + 1]
  end
  say('%s %s: %s %s %s%s%s', entry.seq or '?', moment(cell, string.match(id, '^%d+')), entry.kind or '?',
    entry.name or '?', entry.op or '?', entry.claim and ' ' .. entry.claim or '',
    entry.actor and ' by ' .. entry.actor or '')
  if entry.reason then
    say('    %s', entry.reason)
  end
end

register('rs_changes', ' [COUNT]', 0, 'What changed last? Newest first, 10 changes or up to 500.',
  function(cell, arguments, say)
    local count = tonumber(string.match(arguments[1] or '10', '^%d+$') or 0)
    if count < 1 or count > PAGE then
      refuse('ask for 1 to ' .. PAGE .. ' changes')
    end
    for _, found in ipairs(redis.call('XREVRANGE', cell.prefix .. 'changes', '+', '-', 'COUNT', count)) do
      say_change(cell, say, found[1], found[2])
    end
  end)
