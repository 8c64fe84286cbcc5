-- is_definition(): return whether a field of an aggregate, a server group, a shared pool or a quota is declared by
-- operators, and not a count of claims or part of a quota's division. `over` and `broken` are computed.
-- include: quota_division
local COUNTED = {version = true, members = true, count = true, claimed = true, external = true, over = true,
  used = true, seq = true, broken = true}

local function is_definition(field)
  return not COUNTED[string.match(field, '^[^.]+')] and not is_of_division(field)
end
