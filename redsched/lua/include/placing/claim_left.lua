-- left_behind(): return the counts of a group that do not restrict the replacement of a placement: number by field of
-- the group's hash, or nil.
--
-- Under hard affinity all members that a call moves leave together: the hosts that they leave do not restrict them. So
-- a whole group can leave a working host, and one member may go where all others are.
--
-- The work on a written-off host is lost for good. So the claim itself does not count against its next placement, and
-- under hard affinity neither does any member on a written-off host: otherwise it would hold back a group that can only
-- be reunited elsewhere. The first member may go anywhere, and the others must follow it. The caller names those hosts,
-- and the script checks each: a host that has returned in between counts again. In the hash all of them count until
-- they are released.
-- include: claim_arguments
-- include: claim_counts
-- include: object_counts
-- include: to_int
local function is_written_off(host_key)
  return redis.call('HGET', host_key, 'epoch') == 'lost'
end

local function leave(left, by, domain, number)
  if domain then
    local field = field_of(by, domain)
    left[field] = (left[field] or 0) + number
  end
end

-- Add a placement to the counts that are left behind, as it was counted when it was placed.
local function leave_placement(left, group, base)
  leave(left, 'host', base.host, 1)
  for _, by in ipairs(group.topologies) do
    leave(left, by, base.counted[by], 1)
  end
end

-- Members on the placement's own host are assumed to be counted as it is: the host's zone may have changed since.
local function domain_left(base, host, by)
  if host.name == base.host then
    return base.counted[by]
  end
  return domain_of(host, by)
end

-- Return the counts in the group of the members that this call moves off hosts that were not written off, computed
-- once.
local function leaving_together(call, group)
  if group.leaving then
    return group.leaving
  end
  local left = {members = 0}
  for _, member in ipairs(call.members) do
    local again = member.group == group and member.again
    local base = again and again.claim.base
    if base and again.claim.fields.group == group.own_name and not is_written_off(again.host_key) then
      left.members = left.members + 1
      leave_placement(left, group, base)
    end
  end
  group.leaving = left
  return left
end

local function left_behind(call, member)
  local group, again = member.group, member.again
  local base = group and again and again.claim.base
  local together = group and group.rule and group.rule.kind == 'together'
  if not base or again.claim.fields.group ~= group.own_name then
    return nil -- an ended claim is in no group any more
  elseif not is_written_off(again.host_key) then
    return together and leaving_together(call, group) or nil
  end
  local left = {members = 0}
  if not together then
    leave_placement(left, group, base)
    return left
  end
  for _, number in ipairs(call.written_off) do
    local host = host_of(call, number)
    local count = is_written_off(host.key) and number_of(group, field_of('host', host.name)) or 0
    count = count == MOST and 0 or count -- unreadable: not subtracted
    left.members = left.members + count
    leave(left, 'host', host.name, count)
    for _, by in ipairs(group.topologies) do
      leave(left, by, domain_left(base, host, by), count)
    end
  end
  return left
end
