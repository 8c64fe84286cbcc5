-- rs_hosts: one line for each host. With a state, only hosts in it.
-- include: pages
-- include: slots
local STATES = {OPEN = true, DOWN = true, NOT_ATTESTED = true, DISABLED = true, DRAINING = true, UNKNOWN = true}
local LONGEST, ROW = 76, '%-16s %-12s %6s  %s'

local function free_text(hash, slots)
  local words = {}
  for _, slot in ipairs(slots) do
    if not string.find(slot, '/', 1, true) then
      words[#words + 1] = string.format('%s=%.0f', slot, slot_of(hash, slot).free)
    end
  end
  return table.concat(words, ' ')
end

register('rs_hosts', ' [STATE|ALL] [CURSOR]', 0, 'Hosts with state, claims and free amounts of their own.',
  function(cell, arguments, say)
    local wanted = arguments[1] or 'ALL'
    if wanted ~= 'ALL' and not STATES[wanted] then
      refuse(wanted .. ' is no state: OPEN, DOWN, NOT_ATTESTED, DISABLED, DRAINING, UNKNOWN or ALL')
    end
    local seen, shown = 0, 0
    say(ROW, 'HOST', 'STATE', 'CLAIMS', 'FREE')
    local rest = each_host(cell, arguments[2], function(name, hash, slots)
      local state = state_of(cell, hash)
      seen = seen + 1
      if wanted == 'ALL' or wanted == state then
        shown = shown + 1
        local line = string.format(ROW, name, state, hash.claims or '0', free_text(hash, slots))
        say('%s', #line > LONGEST and string.sub(line, 1, LONGEST - 3) .. '...' or line)
      end
    end)
    say('%d of %d hosts', shown, seen)
    if rest then
      say_next(cell, say, wanted, rest)
    end
  end)
