-- write_quota(): store what a project uses, as changed in memory. The feed does not report it, because no decision uses
-- it: claim.lua checks it. `seq` is that of the cell, so that an audit sees whether claims have joined or left.
-- include: fence
-- include: in_chunks
local function is_unused(quota)
  for _, number in pairs(quota.now) do
    if number > 0 then
      return false
    end
  end
  for field in pairs(quota.hash) do
    if not quota.now[field] and field ~= 'seq' and field ~= 'version' then
      return false
    end
  end
  return true
end

local function write_quota(cell, quota)
  local set, gone = {'seq', text(cell.seq)}, {}
  for field, number in pairs(quota.now) do
    if number == 0 then
      gone[#gone + 1] = field
    elseif number ~= quota.was[field] then
      set[#set + 1] = field
      set[#set + 1] = text(number)
    end
    quota.was[field] = number
  end
  if #gone > 0 and is_unused(quota) then
    redis.call('DEL', quota.key)
  else
    in_chunks('HSET', quota.key, set)
    in_chunks('HDEL', quota.key, gone)
  end
end
