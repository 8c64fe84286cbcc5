#!lua
-- probe: use every command that the other scripts use, on scratch keys, so that a missing permission shows at connect
-- and not in the middle of a claim.
-- KEYS  1 to 4: scratch keys, deleted at the end
-- Reply OK
redis.call('TIME')
redis.call('INFO', 'replication')
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('SET', KEYS[1], 'a', 'PX', '1000')
redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'a', '1', 'b', '2')
redis.call('HGET', KEYS[1], 'a')
redis.call('HMGET', KEYS[1], 'a', 'b')
redis.call('HGETALL', KEYS[1])
redis.call('HDEL', KEYS[1], 'a')
redis.call('EXISTS', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 1000)
local entry = redis.call('XADD', KEYS[2], 'MINID', '~', '1', '*', 'a', '1')
redis.call('XRANGE', KEYS[2], '-', '+')
redis.call('XDEL', KEYS[2], entry)
redis.call('XLEN', KEYS[2])
redis.call('SADD', KEYS[3], 'a')
redis.call('SMEMBERS', KEYS[3])
redis.call('SREM', KEYS[3], 'a')
redis.call('ZADD', KEYS[4], 1, 'a')
redis.call('ZCARD', KEYS[4])
redis.call('ZREM', KEYS[4], 'a')
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return {'OK'}
