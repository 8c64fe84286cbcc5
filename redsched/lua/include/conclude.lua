-- conclude(): write down what succeed.lua has found to be so between a target and its former claim, once whatever is
-- given back has been; `root` is the claim of the id by which their owner knows them. Uses KEYS 5 chores, 6 shelved.
--
-- Have a former claim that is ending or has ended point to its target. One that the store has lost is written anew: its
-- owner finds the target by it, and the host that it was on is told to drop it.
-- include: chores
-- include: fence
local function point(former, target)
  local claim = former.claim
  local fields = {'next', target.id, 'next_token', target.claim.token}
  if not claim.state then
    claim.state = 'ended'
    fields = {'state', 'ended', 'why', 'moved', 'host', ARGV[4], 'digest', target.claim.digest or '',
      'token', target.claim.token, unpack(fields)}
  elseif claim.why == 'shelved' then
    claim.why = 'moved'
    fields[5], fields[6] = 'why', 'moved'
    redis.call('SREM', KEYS[6], former.id)
  end
  claim.next = target.id
  redis.call('HSET', former.keys.claim, unpack(fields))
end

local function is_living(claim)
  return claim.state and (claim.state ~= 'ended' or claim.why == 'shelved')
end

-- What is over about a claim, unless something else is left: its own end as a former one, its gang.
local function rest(cell, one, stays)
  if one.claim.state and not one.claim.former and not left_to_do(one.claim) then
    close_chore(cell, one.keys.claim, one.id, one.claim, stays)
  end
end

-- What is over about all three. The owner's id stays while what it points to lives.
local function rest_of_all(cell, target, former, root, came_back)
  local lives = is_living(target.claim)
  if came_back then
    redis.call('ZADD', KEYS[5], text(cell.now_ms), target.id) -- to give that one back too
  elseif not (target.claim.state == 'ended' and target.claim.next) then
    rest(cell, target, false)
  end
  if not former.claim.next or former.claim.next == target.id then
    rest(cell, former, root == former and former.claim.next and lives)
  end
  if root ~= former and root.claim.state == 'ended' then
    if root.claim.next == target.id then
      rest(cell, root, lives)
    elseif root.claim.next == former.id then
      rest(cell, root, is_living(former.claim))
    end
  end
end

-- `came_back`: the claim of the owner's id lives on its old host, though the target has taken its place.
local function conclude(cell, step, target, former, root)
  local came_back = step.points and root.claim.state and not OVER[root.claim.state]
  if step.points then
    point(former, target)
    if root ~= former and not came_back and not (target.claim.state == 'ended' and target.claim.next_token) then
      point(root, target) -- unless that one has been succeeded: the owner's id leads on already
    end
  elseif step.clears then
    former.claim.next = nil
    redis.call('HDEL', former.keys.claim, 'next', 'next_token')
  end
  if step.closes then
    target.claim.former = nil
    redis.call('HDEL', target.keys.claim, 'former', 'former_host', 'former_token', 'former_why', 'by_ms', 'arrived')
    if not step.points then -- it came to nothing, and the former goes on: nothing is to take the place of this one
      target.claim.fell = '1'
      redis.call('HSET', target.keys.claim, 'fell', '1')
    end
  end
  if step.rival then
    redis.call('ZADD', KEYS[5], text(cell.now_ms), step.rival)
  end
  rest_of_all(cell, target, former, root, came_back)
end
