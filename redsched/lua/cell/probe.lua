#!lua flags=allow-oom
-- probe: use every command that the other scripts use, on scratch keys, so that a missing permission shows at connect
-- and not in the middle of a claim. A full store does not prevent a connection: an operator may need it to free memory.
-- KEYS text_probe hash_probe stream_probe set_probe sorted_probe
--   Each is of one type, has a member left whenever it is touched, and is deleted at the end.
-- Reply OK
redis.call('TIME')
redis.call('INFO', 'replication')
redis.call('SET', KEY.text_probe, 'a', 'PX', '1000')
redis.call('GET', KEY.text_probe)
redis.call('EXISTS', KEY.text_probe)
redis.call('PEXPIRE', KEY.text_probe, 1000)
redis.call('PERSIST', KEY.text_probe)
redis.call('PTTL', KEY.text_probe)
redis.call('HSET', KEY.hash_probe, 'a', '1', 'b', '2')
redis.call('HGET', KEY.hash_probe, 'a')
redis.call('HMGET', KEY.hash_probe, 'a', 'b')
redis.call('HGETALL', KEY.hash_probe)
redis.call('HLEN', KEY.hash_probe)
redis.call('HDEL', KEY.hash_probe, 'a')
local entry = redis.call('XADD', KEY.stream_probe, 'MINID', '~', '1', '*', 'a', '1')
redis.call('XRANGE', KEY.stream_probe, '-', '+')
redis.call('XREVRANGE', KEY.stream_probe, '+', '-', 'COUNT', 1)
redis.call('XDEL', KEY.stream_probe, entry)
redis.call('XLEN', KEY.stream_probe)
redis.call('XTRIM', KEY.stream_probe, 'MAXLEN', '~', '1')
redis.call('SADD', KEY.set_probe, 'a', 'b')
redis.call('SMEMBERS', KEY.set_probe)
redis.call('SISMEMBER', KEY.set_probe, 'a')
redis.call('SREM', KEY.set_probe, 'a')
redis.call('ZADD', KEY.sorted_probe, 1, 'a', 2, 'b')
redis.call('ZCARD', KEY.sorted_probe)
redis.call('ZRANGE', KEY.sorted_probe, 0, -1)
redis.call('ZSCORE', KEY.sorted_probe, 'a')
redis.call('ZREM', KEY.sorted_probe, 'a')
redis.call('DEL', KEY.text_probe, KEY.hash_probe, KEY.stream_probe, KEY.set_probe, KEY.sorted_probe)
return {'OK'}
