#!lua
-- bind: with several cells, the cell that a caller's own claim id belongs to while its outcome is being made.
-- KEYS  1 binding (it lies outside every cell, so there is no fence: a lost binding is made anew)
-- ARGV  1 cell, 2 the cell it may be taken over from ('' for none), 3 how long it is kept, ms
-- Reply OK, then the cell that the id is bound to now
local bound = redis.call('GET', KEYS[1])
if not bound or bound == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  bound = ARGV[1]
end
return {'OK', bound}
