-- quota_of(): the name of the quota that a claim counts in, as its key ends; nil without a project.
local function quota_of(claim)
  return claim.project and claim.project ~= '' and 'quota:' .. claim.project or nil
end
