#!lua
-- quota_declare: the limits of a project that has a ledger have changed.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims
-- ARGV  1 token of the declaration: epoch and version of it in the first cell; then field, value ... of the limits
-- Reply OK | SAME (it holds these or later ones) | UNKNOWN (there is no ledger: count it); epoch, now_ms
-- include: quota_ledger
-- include: quota_limits
local cell, ledger = open_ledger()
if not ledger then
  return {'UNKNOWN', cell.epoch, cell.now_ms}
end
return {set_limits(ledger, ARGV[1], 2) and 'OK' or 'SAME', cell.epoch, cell.now_ms}
