-- bury(): what is left of a claim that has ended: enough to answer whoever still asks, for remember_s. It stays longer
-- while it is shelved, or while its end leaves something to be done: that is a chore, and who does it lets it go.
-- What is being shelved ends as that, whatever its host says, and even with its host; but its owner may release it.
-- Uses KEYS 4 deadlines, 5 chores.
-- include: fence
local REMEMBERED = {'project', 'consumer', 'origin', 'next', 'next_token', 'former', 'former_host', 'former_token',
  'former_why', 'arrived', 'came_from', 'gang', 'fell', 'final', 'mark'}

local function bury(cell, key, id, claim, why)
  if claim.state == 'ending' and claim.why == 'shelved' and why ~= 'released' then
    why = 'shelved'
  end
  local left = {'state', 'ended', 'why', why, 'host', claim.host, 'digest', claim.digest or '', 'token', claim.token}
  for _, field in ipairs(REMEMBERED) do
    if claim[field] and claim[field] ~= '' then
      left[#left + 1] = field
      left[#left + 1] = claim[field]
    end
  end
  redis.call('ZREM', KEYS[4], id)
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(left))
  if claim.origin or claim.next or claim.gang then
    redis.call('ZADD', KEYS[5], text(cell.now_ms), id)
  elseif why ~= 'shelved' then
    redis.call('PEXPIRE', key, cell.remember_ms)
  end
end
