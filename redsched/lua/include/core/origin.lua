-- with_origin(): return the fields of an entry or a hash with `actor` and `request_id`: who caused the change, and by
-- which request; without those that are not known. `origin`: that of one of several requests that share a call, if not
-- the call's; '' for none. As text it is both, each with a newline.
local function with_origin(cell, fields, origin)
  local actor, request_id
  if cell.origin ~= '' then
    actor, request_id = string.match(origin or cell.origin, '^([^\n]*)\n([^\n]*)\n')
  end
  if not actor then
    return fields
  end
  fields = {unpack(fields)} -- a copy: the caller's list has other uses
  if actor ~= '' then
    fields[#fields + 1], fields[#fields + 2] = 'actor', actor
  end
  if request_id ~= '' then
    fields[#fields + 1], fields[#fields + 2] = 'request_id', request_id
  end
  return fields
end
