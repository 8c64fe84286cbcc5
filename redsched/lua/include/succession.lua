-- What is due between two claims of which one, the target, is to succeed the other, the former, or has. pending_step():
-- while it is still to; later_step(): afterwards; disowned_step(): before both. They only look, and return what to do:
--   gives, why   give this one back, for that reason
--   points       the former points to the target from now on
--   clears       the former does not point to the target any more
--   closes       the target is not to succeed it any more: it has, or never will
--   rival        this target of the former is to be looked at: another has taken its place
--   waits        nothing yet: the target is not active; by_ms: if it is not by then it is given back
-- A side is {id, keys, claim}; one that the store does not know has a claim without fields.
-- include: chores
-- include: key_set
-- include: read_hash
-- include: token
local function side(first, id)
  local keys = key_set(first)
  return {id = id, keys = keys, claim = read_hash(keys.claim)}
end

-- Its owner has given it up, or was told that it is over, while nobody could see the target from there.
local function is_gone(claim)
  return OVER[claim.state] and (claim.why == 'released' or claim.final)
end

-- The same of the owner's id, or its owner was told that nobody knows it (void.lua), and hosts have brought back since
-- what it had become: none of that is wanted. Nor is the claim of that id, where what has come up in its stead was
-- given up (give_up.lua).
local function disowned_step(target, former, root)
  local id = root.claim
  for _, one in ipairs({target, former}) do
    local claim = one.claim
    local lives = claim.state and not OVER[claim.state]
    local disowned = one == root and id.final
      or one ~= root and (is_gone(id) or (id.voided_at_ms and newer(id.token, claim.token)))
    if lives and disowned then
      return {gives = one, why = 'released'}
    end
  end
end

-- Given up, a target that was on its way is not wanted either. What is shelved waits to be succeeded.
local function is_given_up(former, reason)
  return is_gone(former) or (OVER[former.state] and former.why == 'shelved' and reason ~= 'shelved')
end

local function has_come_up(claim)
  return claim.state == 'active' or claim.arrived
end

-- Has another one succeeded the former? A pointer without a token leads to one that may still come to nothing, or had,
-- and a loss of data has brought it back. Of two that have been active the later placing wins.
local function has_rival(target, was)
  local claim = target.claim
  local wins = has_come_up(claim) and newer(claim.token, was.next_token or '')
  return OVER[was.state] and was.next_token and was.next ~= target.id and not wins
end

-- `all_heard`: what the store does not know, no host has either.
local function pending_step(target, former, now_ms, all_heard)
  local claim, was = target.claim, former.claim
  local over = OVER[was.state] or (not was.state and all_heard)
  local other = was.next ~= target.id and was.next
  if claim.state == 'ended' then
    -- Who releases a target that has been active means the whole; if it never came up, the former goes on. Where
    -- something has succeeded the target by now, the work is there.
    local takes = not (over and other)
      and (claim.former_why == 'failed' or claim.next_token or (claim.arrived and claim.why == 'released'))
    local why = claim.former_why == 'failed' and 'failed' or claim.next_token and 'moved' or 'released'
    return {gives = takes and former, why = why, points = takes, closes = true,
      clears = not takes and was.next == target.id}
  elseif has_rival(target, was) then
    return {gives = target, why = 'moved'}
  elseif is_given_up(was, claim.former_why) then
    -- `released` of a target that has been active would mean the whole: what is shelved would go with it.
    return {gives = target, why = was.why == 'shelved' and claim.arrived and 'moved' or 'released'}
  end
  -- Where nobody knows why the former has ended another target may have been active, and its host still to say so.
  local falls_to_it = over and was.why ~= 'shelved' and was.why ~= 'void'
  if claim.former_why == 'failed' or has_come_up(claim) or falls_to_it then
    return {gives = former, why = claim.former_why, points = true, closes = true, rival = other}
  end
  local by_ms = not over and claim.by_ms -- else there is nothing to go back to
  if by_ms and tonumber(by_ms) <= now_ms then
    return {gives = target, why = 'expired'}
  end
  return {waits = true, by_ms = by_ms}
end

-- After a loss of data the former may have come back on its old host, or nobody may know who succeeded it. Of two
-- targets the later placing wins.
local function later_step(target, former)
  local claim, was = target.claim, former.claim
  local over = OVER[was.state]
  if not claim.state or claim.state == 'ended' then
    return {clears = was.next == target.id and (not over or was.why == 'shelved')}
  elseif claim.former or OVER[claim.state] or (over and was.next == target.id) then
    return {}
  elseif over and was.next and not newer(claim.token, was.next_token or '') then
    return {gives = target, why = 'moved'}
  end
  return {gives = former, why = 'moved', points = true, rival = over and was.next}
end
