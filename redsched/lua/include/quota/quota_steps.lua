-- quota_steps(): the functions that check and count a call in its project's quota.
-- include: fence
local function quota_steps()
  -- include: quota_claim
  -- include: quota_write
  return {over = over_quota, write = write_quota}
end
