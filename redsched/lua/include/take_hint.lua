-- take_hint(): delete a hint from a host's inbox, and the inbox with its last one: an empty stream costs 370 bytes. A
-- script that also adds a hint adds it first, for it may not touch a key that it has deleted.
local function take_hint(inbox_key, entry_id)
  if entry_id and entry_id ~= '' then
    redis.call('XDEL', inbox_key, entry_id)
    if redis.call('XLEN', inbox_key) == 0 then
      redis.call('DEL', inbox_key)
    end
  end
end
