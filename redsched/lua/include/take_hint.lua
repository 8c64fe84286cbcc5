-- take_hint(): take a hint out of the host's inbox; an emptied stream goes too, for it would cost 370 bytes a host.
local function take_hint(inbox_key, entry_id)
  if entry_id and entry_id ~= '' then
    redis.call('XDEL', inbox_key, entry_id)
    if redis.call('XLEN', inbox_key) == 0 then
      redis.call('DEL', inbox_key)
    end
  end
end
