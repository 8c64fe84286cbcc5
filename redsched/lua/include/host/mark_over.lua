-- mark_over(): note which slots of a host or pool hold more claims than their capacity after its own report,
-- attestation or declaration.
--
-- A host that shrinks, or attests more than it has, is legitimately over capacity, and gets no new claims. By
-- `over.<slot>` an audit can distinguish that from a claim that should not have been made.
-- include: read_hash
-- include: to_int
local function mark_over(host_key)
  local host = read_hash(host_key)
  for field, value in pairs(host) do
    local slot = string.match(field, '^claimed%.(.+)$')
    if slot then
      local over = to_int(value, 0, MOST) > to_int(host['capacity.' .. slot], 0, 0)
      if over and not host['over.' .. slot] then
        redis.call('HSET', host_key, 'over.' .. slot, '1')
      elseif host['over.' .. slot] and not over then
        redis.call('HDEL', host_key, 'over.' .. slot)
      end
    end
  end
end
