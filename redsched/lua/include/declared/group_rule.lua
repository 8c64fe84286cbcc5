-- read_group(): read the topologies that a group counts by besides the host (`topologies`) and its own hard policy as a
-- rule (`rule`); return the policy, nil if the group is not declared. A group of thousands has as many counts: each is
-- read when it is needed, and never the whole hash.
-- include: to_int
local function read_group(group)
  local stored = redis.call('HMGET', group.key, 'policy', 'by', 'max_per_host', 'members', 'count_by.1', 'count_by.2',
    'count_by.3', 'count_by.4', 'count_by.5', 'count_by.6', 'count_by.7', 'count_by.8')
  local policy, policy_by, members = stored[1], stored[2] or 'host', to_int(stored[4], 0, MOST)
  local by = {zone = true, [policy_by] = true}
  for i = 5, #stored do
    by[stored[i] or 'zone'] = true
  end
  by.host = nil
  group.was.members, group.now.members, group.topologies = members, members, {}
  for topology in pairs(by) do
    group.topologies[#group.topologies + 1] = topology
  end
  if policy == 'anti-affinity' then
    group.rule = {kind = 'apart', by = policy_by, tally = group, most = to_int(stored[3], 1, 0)}
  elseif policy == 'affinity' then
    group.rule = {kind = 'together', by = policy_by, tally = group}
  end
  return policy
end
