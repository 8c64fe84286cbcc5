-- rs_hosts: one line for each host. With a state, only hosts in it.
-- include: pages
-- include: people
-- include: slots
local STATES = {OPEN = true, DOWN = true, NOT_ATTESTED = true, DISABLED = true, DRAINING = true, UNKNOWN = true}
local LONGEST, ROW = 76, '%-16s %-12s %6s  %s'

local function free_text(hash)
  local free, slots = {}, slots_of(hash)
  for name, slot in pairs(slots) do
    free[name] = not string.find(name, '/', 1, true) and string.format('%.0f', slot.free) or nil
  end
  return pairs_text(free)
end

register('rs_hosts', ' [STATE|*] [CURSOR]', 0, 'Hosts with state, claims and free amounts of their own.',
  function(cell, arguments, say)
    local wanted = arguments[1] or '*'
    if wanted ~= '*' and not STATES[wanted] then
      refuse(wanted .. ' is no state: OPEN, DOWN, NOT_ATTESTED, DISABLED, DRAINING, UNKNOWN or *')
    end
    local seen, shown = 0, 0
    say(ROW, 'HOST', 'STATE', 'CLAIMS', 'FREE')
    local rest = each_host(cell, arguments[2], function(name, hash)
      local state = state_of(cell, hash)
      seen = seen + 1
      if wanted == '*' or wanted == state then
        shown = shown + 1
        local line = string.format(ROW, name, state, hash.claims or '0', free_text(hash))
        say('%s', #line > LONGEST and string.sub(line, 1, LONGEST - 3) .. '...' or line)
      end
    end)
    say('%d of %d hosts', shown, seen)
    if rest then
      say_next(cell, say, wanted, rest)
    end
  end)
