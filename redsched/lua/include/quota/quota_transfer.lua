-- has_share(): whether a cell has a share of this division of a quota's limits, in this epoch. After a loss of data it
-- may have an old one, of which it has given since: all that was on its way ends with the division.
local function has_share(cell, quota, division)
  return quota.division == division and quota.share_epoch == cell.epoch
end
