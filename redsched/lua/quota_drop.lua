#!lua flags=allow-oom
-- quota_drop: forget a ledger, because its project has no quota any more or it is to be counted anew.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, then entries (there is no fence: forgetting is always right)
-- Reply OK
for _, key in ipairs(KEYS) do
  redis.call('DEL', key)
end
return {'OK'}
