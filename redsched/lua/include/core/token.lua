-- newer(a, b): return whether token a comes after token b, compared by epoch, then by seq.
local function newer(a, b)
  local a_ms, a_id, a_seq = string.match(a, '^(%d+)%-(%w+)%.(%d+)$')
  local b_ms, b_id, b_seq = string.match(b, '^(%d+)%-(%w+)%.(%d+)$')
  if not b_ms then
    return a_ms ~= nil
  end
  if not a_ms then
    return false
  end
  if a_ms ~= b_ms then
    return tonumber(a_ms) > tonumber(b_ms)
  end
  if a_id ~= b_id then
    return a_id > b_id
  end
  return tonumber(a_seq) > tonumber(b_seq)
end
