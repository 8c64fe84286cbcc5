-- swap_shared(): a claim has taken the place of its former one, and counts in its quota for all that it uses; the
-- former, where it is still ending, for the rest. See include/quota_shared.lua.
-- include: quota_of
-- include: things
-- include: whole
local function swap_shared(things, target, former)
  local lives = former.claim.state and former.claim.state ~= 'ended'
  for field, value in pairs(target.claim) do
    local class = string.match(field, '^with_former%.(.+)$')
    if class then
      redis.call('HDEL', target.keys.claim, field)
      if lives then
        redis.call('HSET', former.keys.claim, field, value)
      else
        add(things[quota_of(target.claim)], 'used.' .. class, whole(value, 0, 0))
      end
    end
  end
end
