-- is_definition(): whether a field of an aggregate, a server group or a shared pool is what operators declare, and not
-- what claims have counted in it. `over` is worked out from both.
local COUNTED = {version = true, members = true, count = true, claimed = true, external = true, over = true}

local function is_definition(field)
  return not COUNTED[string.match(field, '^[^.]+')]
end
