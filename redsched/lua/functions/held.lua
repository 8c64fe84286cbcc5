-- rs_held: the hosts on which claims hold some of a class.
-- include: pages
-- include: slots
register('rs_held', ' CLASS [CURSOR]', 1, 'On which hosts is a class held?', function(cell, arguments, say)
  local wanted, seen, shown = arguments[1], 0, 0
  local rest = each_host(cell, arguments[2], function(name, hash, slots)
    seen = seen + 1
    local claimed, capacity = 0, 0
    for _, slot in ipairs(slots) do
      if slot == wanted or class_of(slot) == wanted then
        local of = slot_of(hash, slot)
        claimed, capacity = claimed + of.claimed, capacity + of.capacity
      end
    end
    if claimed > 0 then
      shown = shown + 1
      say('%-24s %9.0f of %.0f', name, claimed, capacity)
    end
  end)
  say('%s is held on %d of %d hosts', wanted, shown, seen)
  if rest then
    say_next(cell, say, wanted, rest)
  end
end)
