-- uncounted(): return the topologies of a group's new definition, which begins at ARGV[first], by which not all of its
-- members are counted, in the order of the definition.
-- Members are always counted by host and by zone; by other topologies only if an earlier definition had them. After a
-- loss of data, the claims that hosts restore have the counts of that definition, so the same one may be declared
-- again.
-- include: to_int
local function uncounted(group, members, first)
  local missing, counted = {}, {}
  for field, value in pairs(group) do
    local by = string.match(field, '^count%.([^=]+)=')
    if by then
      counted[by] = (counted[by] or 0) + to_int(value, 0, MOST)
    end
  end
  for i = first, #ARGV, 2 do
    local by = ARGV[i + 1]
    local counts = ARGV[i] == 'by' or string.sub(ARGV[i], 1, 9) == 'count_by.'
    if counts and by ~= 'host' and by ~= 'zone' and counted[by] ~= members then
      missing[#missing + 1] = by
    end
  end
  return missing
end
