-- mark_over(): note which slots of a host or pool hold more claims than their capacity after its own report,
-- attestation or declaration.
--
-- A host that shrinks, or attests more than it has, is legitimately over capacity, and gets no new claims. By
-- `over.<slot>` an audit can distinguish that from a claim that should not have been made. `host` is the hash as the
-- script has written it; without it, the hash is read.
-- include: read_hash
-- include: to_int
local function mark_over(host_key, host)
  host = host or read_hash(host_key)
  for field, value in pairs(host) do
    if string.sub(field, 1, 8) == 'claimed.' then
      local slot = string.sub(field, 9)
      local over = to_int(value, 0, MOST) > to_int(host['capacity.' .. slot], 0, 0)
      if over and not host['over.' .. slot] then
        redis.call('HSET', host_key, 'over.' .. slot, '1')
      elseif host['over.' .. slot] and not over then
        redis.call('HDEL', host_key, 'over.' .. slot)
      end
    end
  end
end
