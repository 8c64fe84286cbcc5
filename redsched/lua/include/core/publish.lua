-- publish(): one entry of the cell's change feed, numbered densely by cell.seq. finish(): store the seq reached.
--
-- Call publish before every other write of the script: XADD is the write that can be refused, and a change that readers
-- miss would be worse than none. `fields` is a flat list of field, new absolute value ('' means removed). `more` is the
-- number of entries of this script that follow, so that readers can apply all of them together. Entries older than
-- `keep_s` are removed at every hundredth one: the server removes whole nodes, of up to as many.
-- `origin`: see origin.lua.
-- include: fence
-- include: origin
local MOST_VALUES = 900 -- a longer entry contains only `reread 1`, and readers read that host again
local TRIM_EVERY = 100

local function publish(cell, kind, name, version, op, more, fields, origin)
  cell.seq = cell.seq + 1
  cell.seq_text = text(cell.seq)
  if #fields > MOST_VALUES then
    fields = {'reread', '1'}
  end
  local id = redis.call('XADD', KEYS[2], '*', 'seq', cell.seq_text, 'kind', kind, 'name', name, 'version',
    text(version), 'op', op, 'more', more == 0 and '0' or text(more), unpack(with_origin(cell, fields, origin)))
  if cell.seq % TRIM_EVERY == 0 then
    local keep_s = redis.call('HGET', KEYS[1], 'keep_s') or 60
    redis.call('XTRIM', KEYS[2], 'MINID', '~', text(cell.now_ms - keep_s * 1000))
    -- After a clock that was ahead, ids go on from there, and do not tell the age of entries until it is there again.
    if tonumber(string.match(id, '^%d+')) > cell.now_ms + 60000 then
      redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', '100000')
    end
  end
end

local function finish(cell)
  redis.call('HSET', KEYS[1], 'seq', cell.seq_text)
end
