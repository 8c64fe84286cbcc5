-- rs_holders: the claims on a host that hold some of a slot, or of a class in any of its pools.
-- include: claims_on
-- include: people
-- include: slots
register('rs_holders', ' HOST CLASS [CURSOR]', 2, 'Who holds a class, or one slot such as gpu0/VGPU, on a host?',
  function(cell, arguments, say)
    local host, wanted, total = arguments[1], arguments[2], 0
    local lines = {}
    local rest = each_placement(cell, host, arguments[3], function(id, claim, prefix)
      for slot, amount in pairs(amounts_of(claim, prefix)) do
        local held = tonumber(amount)
        if held and held > 0 and (slot == wanted or class_of(slot) == wanted) then
          total = total + held
          local text = string.format('%9.0f %-16s %-14s %-8s %s', held, slot, id, claim[prefix .. 'state'] or '?',
            named(claim.project))
          lines[#lines + 1] = {held = held, id = id .. slot, text = text}
        end
      end
    end)
    table.sort(lines, function(a, b)
      return a.held > b.held or (a.held == b.held and a.id < b.id)
    end)
    for _, line in ipairs(lines) do
      say('%s', line.text)
    end
    say('%.0f %s held by %d claims', total, wanted, #lines)
    if rest then
      say_next(cell, say, host, wanted, rest)
    end
  end)
