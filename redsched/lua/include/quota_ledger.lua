-- The ledger of a project: what its claims take of its quota. It has a hash tag of its own, so it may lie on another
-- shard than the cells, and lose writes which they have kept: therefore a fence of its own, and a count of its own.
-- KEYS  1 meta, 2 ledger, 3 deadlines, 4 claims, as every script about a ledger has them; then the entry of each id
--
-- A ledger is `counted` in an epoch of its own and in one of each cell: what it says holds as long as all of these are
-- the present ones. Otherwise somebody lost writes, and it gives nothing until it has been counted anew from the cells.
-- include: fence
-- include: read_hash
local function open_ledger()
  local cell = fence()
  local ledger, known = read_hash(KEYS[2])
  if not known then
    redis.call('DEL', KEYS[1]) -- the fence has just made it, for a project that has no quota (any more)
    return cell, nil
  end
  return cell, ledger
end
