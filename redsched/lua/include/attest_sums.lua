-- count_anew(), sum_claimed(): what an attestation changes in numbers, beside the host and on it.
--
-- Count the claims that end, come back or are another placing now out and in, in their groups and shared pools. What
-- the store had here already is counted. Returns the names of those whose keys are missing.
-- include: amounts
-- include: counted_in
-- include: fence
-- include: gang_heard
-- include: sums
local function count_anew(things, merged)
  local lacking = {}
  local function count(claim, by)
    if claim and not lacks(things, claim, lacking) then
      count_claim(things, claim, by)
    end
  end
  for _, entry in ipairs(merged.ended) do
    count(entry.stored, -1)
  end
  for _, entry in ipairs(merged.kept) do
    if moves_in_gang(entry) then
      lacks(things, entry.claim, lacking)
    end
    if entry.claim ~= entry.stored then
      count(entry.stored, -1)
      count(entry.claim, 1)
    end
  end
  return lacking
end

local function pools_are_readable(kept)
  for _, entry in ipairs(kept) do
    local _, shared = amounts_of(entry.claim, -1)
    for _, amount in pairs(shared) do
      if amount < 0 then
        return false
      end
    end
  end
  return true
end

-- The flat list of what a host's fields are with the kept claims: claimed.<slot> for every slot that is or was claimed,
-- claims and starting where they differ; nil if an amount is no whole one. Then the fields that go: of slots of which
-- nothing is claimed any more, and which the host does not have.
local function sum_claimed(host, kept)
  local sums, flat, gone = sums_of(kept), {}, {}
  if not sums or not pools_are_readable(kept) then
    return nil
  end
  for field in pairs(host) do
    if string.match(field, '^claimed%..') then
      sums[field] = sums[field] or 0
    end
  end
  for field, sum in pairs(sums) do
    local slot = string.match(field, '^claimed%.(.+)$')
    if slot and sum == 0 and not host['capacity.' .. slot] then
      gone[#gone + 1] = field
    elseif slot or (host[field] or '0') ~= text(sum) then
      flat[#flat + 1] = field
      flat[#flat + 1] = text(sum)
    end
  end
  return flat, gone
end
