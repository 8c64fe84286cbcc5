-- breach_of(): return by how many members a group breaks its own hard policy, 0 if it holds, and how, as text.
-- note_breaches(): note that of groups before their counts change. note_changed(): likewise, of those whose changes in
-- memory may break the policy. mark_breaches(): write after that, for the groups that were noted, whether it is broken
-- (`broken`, by which the status finds such groups), and report those that are broken by more than before.
--
-- No claim breaks a hard policy. It breaks when the zone or label of a host with members changes, when hosts restore
-- members after a loss of data, and by a declaration.
-- include: publish
-- include: read_hash
-- include: to_int
local function named_counts(texts)
  table.sort(texts)
  return string.sub(table.concat(texts, ', '), 1, 900)
end

local function breach_of(hash)
  local by, most = hash.by or 'host', to_int(hash.max_per_host, 1, 0)
  if hash.policy ~= 'anti-affinity' and hash.policy ~= 'affinity' then
    return 0, ''
  end
  local members, prefix, counted = to_int(hash.members, 0, 0), 'count.' .. by .. '=', 0
  local largest, excess, all, above = 0, 0, {}, {}
  for field, value in pairs(hash) do
    if string.sub(field, 1, #prefix) == prefix then
      local number, domain = to_int(value, 0, 0), string.sub(field, #prefix + 1)
      counted, largest = counted + number, math.max(largest, number)
      all[#all + 1] = text(number) .. ' in ' .. domain
      if number > most then
        excess, above[#above + 1] = excess + number - most, all[#all]
      end
    end
  end
  local unplaced = math.max(0, members - counted)
  if unplaced > 0 then
    all[#all + 1] = text(unplaced) .. ' in no ' .. by
    above[#above + 1] = all[#all]
  end
  if hash.policy == 'affinity' then
    return math.max(0, members - largest), 'affinity by ' .. by .. ', but members are split: ' .. named_counts(all)
  end
  return excess + unplaced, 'anti-affinity by ' .. by .. ' allows at most ' .. text(most) .. ' in each, but found '
    .. named_counts(above)
end

local HARD = {affinity = true, ['anti-affinity'] = true}

local function note_breaches(objects)
  for _, object in ipairs(objects) do
    if object.kind == 'server-group' and HARD[redis.call('HGET', object.key, 'policy') or ''] then
      object.breach = breach_of((read_hash(object.key)))
    end
  end
end

-- Return whether the changes of a group's counts may break its hard policy, if it held before: a domain has more
-- members than may be there, or for affinity no domain has all of them, or a member is counted in no domain.
local function may_break(group, policy, by, most, stored_members)
  local was, now = group.was.members or stored_members, group.now.members or stored_members
  local prefix = 'count.' .. by .. '='
  local unplaced, has_all, above, changed = now - was, now == 0, false, now ~= was
  for field, number in pairs(group.now) do
    local before = group.was[field] or 0
    if number ~= before and string.sub(field, 1, #prefix) == prefix then
      changed, unplaced = true, unplaced - (number - before)
      has_all = has_all or number == now
      above = above or (number > before and number > most)
    end
  end
  if policy == 'affinity' then
    return changed and not has_all
  end
  return above or unplaced > 0
end

-- A group of thousands has as many counts, and each of its hosts attests: the whole hash is read only if it has to be.
local function note_changed(objects)
  for _, object in ipairs(objects) do
    if object.kind == 'server-group' then
      local stored = redis.call('HMGET', object.key, 'policy', 'by', 'max_per_host', 'members', 'broken')
      local most, members = to_int(stored[3], 1, 0), to_int(stored[4], 0, 0)
      if HARD[stored[1] or ''] and (stored[5] or may_break(object, stored[1], stored[2] or 'host', most, members)) then
        object.breach = breach_of((read_hash(object.key)))
      end
    end
  end
end

local function mark_breaches(cell, objects)
  for _, object in ipairs(objects) do
    local hash = object.breach and not object.ends and read_hash(object.key)
    local breach, how = breach_of(hash or {})
    if hash and breach > object.breach then
      local version = text(to_int(hash.version, cell.seq, cell.seq) + 1)
      publish(cell, 'server-group', object.own_name, version, 'rule-broken', 0, {'reason', how})
      redis.call('HSET', object.key, 'version', version)
    end
    if breach > 0 and not hash.broken then
      redis.call('HSET', object.key, 'broken', '1')
    elseif hash and breach == 0 and hash.broken then
      redis.call('HDEL', object.key, 'broken')
    end
  end
end
