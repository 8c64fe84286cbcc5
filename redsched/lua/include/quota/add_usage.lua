-- add_usage(): add an amount of a slot to what a claim uses of its project's quota, by class.
local function add_usage(usage, slot, amount)
  local class = string.find(slot, '/', 1, true) and string.match(slot, '[^/]+$') or slot
  usage[class] = (usage[class] or 0) + amount
end
