-- too_much(): return the first count that a claim's changes would raise too high, such as `claimed.VCPU`, or nil. A sum
-- above the largest amount would be cut to it, and be wrong as soon as one of its claims ends. The counts of objects
-- that are not passed are left to commit(), which reports these objects as missing.
-- include: claim_record
-- include: counters
-- include: object_counts
local MOST_OF = {claims = 5000} -- as MAX_HOST_CLAIMS in redsched/model/limits.py

local function too_much(claim, objects)
  local before = parse_claim(claim.id, claim.key, claim.stored, claim.exists)
  for name, fields in pairs(difference(counters(before), counters(claim))) do
    for field, by in pairs(fields) do
      if by > 0 and objects[name] and number_of(objects[name], field) + by > (MOST_OF[field] or MOST) then
        return field
      end
    end
  end
  return nil
end
