-- mark_over(): note which slots of a host or pool hold more claims than their capacity after its own report,
-- attestation or declaration; report those for which that is new. Returns the version (text).
--
-- A host that shrinks, or attests more than it has, is legitimately over capacity, and gets no new claims. By
-- `over.<slot>` an audit can distinguish that from a claim that should not have been made; by `over_slots` the status
-- finds these hosts. A pool that is not declared has no capacity yet to be over. `hash` is that of the object as the
-- script has written it; without it, it is read.
-- include: in_chunks
-- include: publish
-- include: read_hash
-- include: to_int
local function mark_over(cell, kind, name, key, hash)
  hash = hash or read_hash(key)
  local set, gone, new, over, declared = {}, {}, {}, 0, kind == 'host'
  for field in pairs(hash) do
    declared = declared or string.sub(field, 1, 9) == 'capacity.'
  end
  for field, value in pairs(hash) do
    local family, slot = string.match(field, '^(%l+)%.(.+)$')
    if family == 'claimed' then
      local claimed, capacity = to_int(value, 0, MOST), to_int(hash['capacity.' .. slot], 0, 0)
      if declared and claimed > capacity then
        over = over + 1
        if not hash['over.' .. slot] then
          set[#set + 1], set[#set + 2] = 'over.' .. slot, '1'
          new[#new + 1] = slot .. ': ' .. text(claimed) .. ' claimed of ' .. text(capacity)
        end
      elseif hash['over.' .. slot] then
        gone[#gone + 1] = 'over.' .. slot
      end
    elseif family == 'over' and not hash['claimed.' .. slot] then
      gone[#gone + 1] = field
    end
  end
  if kind == 'host' and text(over) ~= (hash.over_slots or '0') then
    set[#set + 1], set[#set + 2] = 'over_slots', text(over)
  end
  local version = hash.version
  if #new > 0 then
    table.sort(new)
    version = text(to_int(version, cell.seq, cell.seq) + 1)
    publish(cell, kind, name, version, 'over-capacity', 0, {'reason', string.sub(table.concat(new, ', '), 1, 1000)})
    set[#set + 1], set[#set + 2] = 'version', version
  end
  in_chunks('HSET', key, set)
  in_chunks('HDEL', key, gone)
  return version
end
