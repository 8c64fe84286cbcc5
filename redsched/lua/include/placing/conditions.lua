-- conditions(): return the functions that parse, check and count what a call of claim.lua or replace.lua requests
-- besides hosts and their amounts. Few calls need them; the others save the time that it takes to create these
-- functions.
-- include: fence
-- include: object_at
-- include: publish
local function conditions()
  -- include: claim_conditions
  -- include: claim_objects
  -- include: claim_rules
  -- include: objects
  return {parse = parse_conditions, unsuited = unsuited, violated_rule = violated_rule, place = place,
    add_to_claim = add_conditions, changed_objects = changed_objects, write_objects = write_objects,
    append_objects = append_objects}
end
