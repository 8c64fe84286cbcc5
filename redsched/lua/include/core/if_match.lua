-- if_match(): return whether an object with this tag (nil: it does not exist) may be written. `wanted` is '' for a
-- write without a condition, '*' if it must exist, '-' if it must not, or the tags of which it must have one, each
-- after a space.
local function if_match(wanted, tag)
  if wanted == '' then
    return true
  elseif wanted == '-' then
    return not tag
  end
  return tag and (wanted == '*' or string.find(wanted .. ' ', ' ' .. tag .. ' ', 1, true)) and true or false
end
