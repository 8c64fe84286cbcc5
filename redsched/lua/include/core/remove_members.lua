-- remove_members(): ZREM or SREM in chunks. Only existing members are removed, so that the key lasts until the last
-- chunk: in a slot that is being migrated a script may not touch a key again that it has removed.
-- include: in_chunks
local LOOK_UP = {ZREM = 'ZSCORE', SREM = 'SISMEMBER'}

local function remove_members(command, key, list)
  local present = #list <= CHUNK and list or {}
  if #list > CHUNK then
    for _, member in ipairs(list) do
      local found = redis.call(LOOK_UP[command], key, member)
      present[#present + 1] = found and found ~= 0 and member or nil
    end
  end
  in_chunks(command, key, present)
end
