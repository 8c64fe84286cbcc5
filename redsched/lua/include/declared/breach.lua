-- breach_of(): return by how many members a group breaks its own hard policy, 0 if it holds, and how, as text.
-- note_breaches(): note that of groups before their counts change. mark_breaches(): write after that whether it is
-- broken (`broken`, by which the status finds such groups), and report those that are broken by more than before.
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
    all[#all + 1] = text(unplaced) .. ' in none'
    above[#above + 1] = all[#all]
  end
  if hash.policy == 'affinity' then
    return math.max(0, members - largest), 'affinity by ' .. by .. ', but members are ' .. named_counts(all)
  end
  return excess + unplaced, 'anti-affinity by ' .. by .. ' with at most ' .. text(most) .. ', but members are '
    .. named_counts(above)
end

local function note_breaches(objects)
  for _, object in ipairs(objects) do
    if object.kind == 'server-group' then
      object.breach = breach_of((read_hash(object.key)))
    end
  end
end

local function mark_breaches(cell, objects)
  for _, object in ipairs(objects) do
    local hash, known
    if object.kind == 'server-group' and not object.ends then
      hash, known = read_hash(object.key)
    end
    local breach, how = 0, ''
    if known then
      breach, how = breach_of(hash)
    end
    if breach > (object.breach or 0) then
      local version = text(to_int(hash.version, cell.seq, cell.seq) + 1)
      publish(cell, 'server-group', object.own_name, version, 'rule-broken', 0, {'reason', how})
      redis.call('HSET', object.key, 'version', version)
    end
    if breach > 0 and not hash.broken then
      redis.call('HSET', object.key, 'broken', '1')
    elseif known and breach == 0 and hash.broken then
      redis.call('HDEL', object.key, 'broken')
    end
  end
end
