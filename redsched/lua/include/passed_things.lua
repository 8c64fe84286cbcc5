-- passed_things(): the things whose keys were passed, from KEYS[first] on: as a list, and by name.
-- include: thing_at
local function passed_things(first)
  local things = {}
  for i = first, #KEYS do
    local thing = thing_at(KEYS[i])
    things[#things + 1] = thing
    things[thing.name] = thing
  end
  return things
end
