-- closed_because(): return why a host gets no claims at all, or ''. `epoch` to `alive_until_ms`: its fields; `known`:
-- whether it exists.
-- include: to_int
local function closed_because(cell, known, epoch, status, alive_until_ms)
  if not known then
    return 'UNKNOWN'
  elseif epoch ~= cell.epoch then
    return 'NOT_ATTESTED'
  elseif not (to_int(alive_until_ms, 0, 0) > cell.now_ms) then
    return 'DOWN'
  elseif status ~= 'enabled' then
    return status == 'draining' and 'DRAINING' or 'DISABLED'
  end
  return ''
end
