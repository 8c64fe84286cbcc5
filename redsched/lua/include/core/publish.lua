-- publish(): one entry of the cell's change feed, numbered densely by cell.seq. finish(): store the seq reached.
--
-- Call publish before every other write of the script: XADD is the write that can be refused, and a change that readers
-- miss would be worse than none. `fields` is a flat list of field, new absolute value ('' means removed). `more` is the
-- number of entries of this script that follow, so that readers can apply all of them together.
-- include: fence
local MOST_VALUES = 900 -- a longer entry contains only `reread 1`, and readers read that host again

local function publish(cell, kind, name, version, op, more, fields)
  cell.seq = cell.seq + 1
  if #fields > MOST_VALUES then
    fields = {'reread', '1'}
  end
  redis.call('XADD', KEYS[2], 'MINID', '~', text(cell.now_ms - cell.keep_ms), '*', 'seq', text(cell.seq), 'kind', kind,
    'name', name, 'version', text(version), 'op', op, 'more', text(more), unpack(fields))
end

local function finish(cell)
  redis.call('HSET', KEYS[1], 'seq', text(cell.seq))
end
