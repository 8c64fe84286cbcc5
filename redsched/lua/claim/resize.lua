#!lua flags=allow-oom
-- resize: the owner requests new amounts for a claim: all of its slots, as absolute numbers. A claim that no host has
-- accepted gets them at once. Otherwise it holds the larger of the old and new amount of each slot until its host,
-- which is notified through its inbox, has applied them (resized).
-- KEYS meta changes hosts deadlines reconcile shelved claim ...
-- ARGV host id token limited ...
-- Further keys: host, claims and inbox of the host, then shared pools; passed.lua. limited: 1 if the project is known
-- to have a quota. Then slot, amount ...
-- Reply outcome, epoch, now_ms, then by outcome
--   OK     token (a new one), state
--   ALREADY_DONE   likewise: this token was resized to these amounts, or the claim has them or is being resized to
--                  them; nothing is written
--   FULL   the slot that refuses its amount, and the rule that does: min_unit, max_unit, step_size, kept (for a request
--          that waits), or '' for a lack of room; the value of the rule, for a lack of room the most that the claim may
--          have; the next smaller and the next larger amount that the claim can get, or has; 0 for none
--   OVER_QUOTA UNSHARED   of the project's quota: see quota_room.lua
--   RETRY  the names of missing keys
--   MOVING ENDING ENDED STALE UNKNOWN NOT_ATTESTED, SETTLING (it needs more of a shared pool, and the cell is not
--   settled)
-- include: about
-- include: new_amounts
-- include: quota_room
-- include: quota_usage
-- include: resize_fit
local cell, objects = fence(KEY.deadlines), passed(8)
local claim, host = load_claim(KEY.claim, ARG.id), objects['host:' .. ARG.host]
local function answer(outcome, ...)
  return {outcome, cell.epoch, cell.now_ms, ...}
end
local wanted, placement = amounts_in_argv(5), nil
for _, one in pairs(claim.placements) do
  local had, has = one.resized_from == ARG.token, next(one.resizing_to) and one.resizing_to or one.amounts
  if one.token == ARG.token or (had and equal_amounts(wanted, has)) then
    placement = one
  end
end
local found, no = find_placement(cell, claim, ARG.host, host.key, placement and placement.token or ARG.token)
if not found then
  return answer(no)
elseif placement.state == 'ending' then
  return answer('ENDING')
elseif equal_amounts(wanted, next(placement.resizing_to) and placement.resizing_to or placement.amounts) then
  return answer('ALREADY_DONE', placement.token, placement.state)
elseif has_other_wanted(claim, placement) then
  return answer('MOVING') -- one placement will be released, and the other was chosen for these amounts
end
local was, lacking = placement.amounts, {}
for slot, amount in pairs(wanted) do
  local pool = string.match(slot, '^(pool:.+)/')
  if pool then
    needs(objects, lacking, pool)
    if not cell.settled and amount > (was[slot] or 0) then
      return answer('SETTLING')
    end
  end
end
local quota = (claim.fields.project or '') ~= '' and needs(objects, lacking, 'quota:' .. claim.fields.project)
if #lacking > 0 then
  return answer('RETRY', unpack(lacking))
end
local slot, why = too_small(host.key, objects, was, wanted)
if slot then
  return answer('FULL', slot, unpack(why))
end

-- Return by how much the usage of a claim grows, by class.
local function grown(before, after)
  local more, used = usage_of_amounts(after), usage_of_amounts(before)
  for class, amount in pairs(more) do
    more[class] = amount - (used[class] or 0)
  end
  return more
end

local at_once = placement.state == 'claimed'
local now = at_once and wanted or larger_of(was, wanted)
local over = quota and quota_refusal(cell, quota, grown(was, now), ARG.limited == '1')
if over then
  return over
end
placement.resized_from, placement.token = placement.token, next_token(cell)
placement.amounts = now
placement.resizing_to = at_once and {} or wanted
placement.op, placement.notify = at_once and 'resized' or 'resizing', at_once and 'claim' or 'resize'
lacking = commit(cell, {claim}, objects, new_due())
if lacking then
  return answer('RETRY', unpack(lacking))
end
return answer('OK', placement.token, placement.state)
