#!lua
-- The commands of claim.lua for one member and three classes, with constants as far as possible, and a reply of the same
-- length: what the claim would cost if it decided nothing.
redis.call('TIME')
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'now_ms', 'replid', 'settled', 'declared_seq', 'remember_s',
  'jump_s', 'oldest')
redis.call('INFO', 'replication')
redis.call('EXISTS', KEYS[8])
local host = redis.call('HMGET', KEYS[9], 'version', 'epoch', 'status', 'alive_until_ms', 'inbox', 'claims', 'starting',
  'capacity.VCPU', 'claimed.VCPU', 'external.VCPU', 'min.VCPU', 'max.VCPU', 'step.VCPU', 'capacity.MEMORY_MB',
  'claimed.MEMORY_MB', 'external.MEMORY_MB', 'min.MEMORY_MB', 'max.MEMORY_MB', 'step.MEMORY_MB', 'capacity.DISK_GB',
  'claimed.DISK_GB', 'external.DISK_GB', 'min.DISK_GB', 'max.DISK_GB', 'step.DISK_GB')
redis.call('XADD', KEYS[2], '*', 'seq', meta[2], 'kind', 'host', 'name', 'sim-00001', 'version', host[1], 'op', 'claimed',
  'more', '0', 'claim', KEYS[8], 'claims', '12', 'starting', '12', 'claimed.VCPU', '123', 'claimed.MEMORY_MB', '12300',
  'claimed.DISK_GB', '1000')
local entry = redis.call('XADD', KEYS[11], '*', 'op', 'claim', 'number', '12', 'epoch', ARGV[1], 'claim', KEYS[8],
  'token', '1795517374093-7489213e.402')
redis.call('SADD', KEYS[10], KEYS[8])
redis.call('ZADD', KEYS[4], ARGV[2], KEYS[8])
redis.call('HSET', KEYS[8], 'host', 'sim-00001', 'state', 'claimed', 'project', '', 'consumer', '', 'digest', ARGV[6],
  'claimed_at_ms', '1795520974306', 'expires_at_ms', '1795520974306', 'token', '1795517374093-7489213e.402', 'inbox_id',
  entry, 'amount.VCPU', '1', 'amount.MEMORY_MB', '1024', 'amount.DISK_GB', '20')
redis.call('HSET', KEYS[9], 'version', host[1], 'inbox', host[5], 'claims', '12', 'starting', '12', 'claimed.VCPU', '123',
  'claimed.MEMORY_MB', '12300', 'claimed.DISK_GB', '1000')
redis.call('HSET', KEYS[1], 'seq', meta[2])
return {'OK', meta[1], 12345, 1, 'sim-00001', '1795517374093-7489213e.402', '1795520974306', 'claimed', 1, 0, 1, 12, '',
  12, 12, 3, 'VCPU', 12, 'MEMORY_MB', 1234, 'DISK_GB', 1000}
