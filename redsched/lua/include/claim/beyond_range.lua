-- beyond_range(): return the first sum that the changes of some claims would raise above the largest amount, such as
-- `used.VCPU`, or nil: it would be cut to that amount, and be wrong as soon as one of its claims ends. Call it after
-- prepare(). A stored sum that is unreadable is left to repairs, so that it keeps no host from attesting.
-- include: counters
-- include: object_counts
local function beyond_range(claims, objects)
  local sums = {}
  for _, claim in ipairs(claims) do
    for name, fields in pairs(claim.delta) do
      for field, by in pairs(fields) do
        count(sums, name, field, by)
      end
    end
  end
  for name, fields in pairs(sums) do
    for field, by in pairs(fields) do
      local number = by > 0 and not objects[name].apart and number_of(objects[name], field)
      if number and number < MOST and number + by > MOST then
        return field
      end
    end
  end
  return nil
end
