-- is_definition(): whether a field of an aggregate, a server group, a shared pool or a quota is what operators declare,
-- and not what claims have counted in it, or its share of a quota. `over` is worked out.
-- include: quota_division
local COUNTED = {version = true, members = true, count = true, claimed = true, external = true, over = true,
  used = true, seq = true}

local function is_definition(field)
  return not COUNTED[string.match(field, '^[^.]+')] and not is_of_division(field)
end
