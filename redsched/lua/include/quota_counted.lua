-- is_counted(): whether a ledger can be relied on (include/quota_ledger.lua), and where its arguments end: `first` is
-- where in ARGV the number of cells stands, then cell, epoch of each.
local function is_counted(cell, ledger, first)
  local last = first + 2 * tonumber(ARGV[first])
  local counted = ledger.counted_in == cell.epoch
  for i = first + 1, last, 2 do
    counted = counted and ledger['epoch.' .. ARGV[i]] == ARGV[i + 1]
  end
  return counted, last
end
