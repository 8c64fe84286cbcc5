#!lua
-- bind: with several cells, the cell that a caller's own claim id belongs to while its outcome is being made, or that
-- a server group is pinned to by its first claim.
-- KEYS  1 binding (it lies outside every cell, so there is no fence: a lost binding is made anew)
-- ARGV  1 cell, 2 the cell it may be taken over from ('' for none), 3 how long it is kept, ms (0: for ever)
-- Reply OK, then the cell that it is bound to now
local bound = redis.call('GET', KEYS[1])
if not bound or bound == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1])
  if ARGV[3] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  bound = ARGV[1]
end
return {'OK', bound}
