-- has_share(): return whether a cell has a share of this division of a quota's limits, in this epoch. After a loss of
-- data its share may be an old one, part of which it has transferred since; transfers under way end with their
-- division.
local function has_share(cell, quota, division)
  return quota.division == division and quota.share_epoch == cell.epoch
end
