-- each_host(), each_claim_on(): look at the hosts of a cell, or the claims on a host, from a cursor on: at most 500 in
-- a call, fewer if they have many fields. `look(name, hash, slots)` of a host; `look(id)` of a claim returns how many
-- fields it has read. Return the cursor of the rest, or nil. page_after(): return the members of a sorted set that
-- follow a cursor, and the cursor of the rest, or nil. say_next(): say how to go on.
--
-- A cursor is that of ZSCAN or SSCAN, which visit whatever is there all the time, though hosts report meanwhile; with
-- the last name that was looked at, if the scan returned more than one call may look at.
-- include: register
-- include: slots
local PAGE, MOST_FIELDS = 500, 16000
local SCANNED = PAGE - 20 -- a scan may return a few more than it is asked for

local function each(cursor, scan, step, look)
  local scanned, last = string.match(cursor or '0', '^(%d+):?(.*)$')
  if not scanned then
    refuse(cursor .. ' is no cursor: take it from the last line of the call before')
  end
  local reply = scan(scanned)
  local names, count, fields = {}, 0, 0
  for number = 1, #reply[2], step do
    names[#names + 1] = reply[2][number]
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if name > last then
      if count == PAGE or fields > MOST_FIELDS then
        return scanned .. ':' .. last
      end
      fields, count, last = fields + look(name), count + 1, name
    end
  end
  return reply[1] ~= '0' and reply[1] or nil
end

local function each_host(cell, cursor, look)
  return each(cursor, function(from)
    return redis.call('ZSCAN', cell.prefix .. 'hosts', from, 'COUNT', SCANNED)
  end, 2, function(name)
    local hash, slots, fields = read_host(cell.prefix .. 'host:' .. name)
    look(name, hash, slots)
    return fields
  end)
end

local function each_claim_on(cell, host, cursor, look)
  return each(cursor, function(from)
    return redis.call('SSCAN', cell.prefix .. 'claims:' .. host, from, 'COUNT', SCANNED)
  end, 1, look)
end

-- The cursor has the score and the name of the last member. Its rank would be none: members before it may be gone.
local function page_after(key, most, cursor)
  local score, last = string.match(cursor or '0:', '^(%d+):(.*)$')
  if not score then
    refuse(cursor .. ' is no cursor: take it from the last line of the call before')
  end
  local from, found = redis.call('ZCOUNT', key, '-inf', '(' .. score), {}
  repeat
    local reply = redis.call('ZRANGE', key, '-inf', most, 'BYSCORE', 'LIMIT', from, PAGE, 'WITHSCORES')
    for number = 1, #reply, 2 do
      local name, its_score = reply[number], reply[number + 1]
      if tonumber(its_score) > tonumber(score) or name > last then
        if #found == PAGE then
          return found, string.format('%.0f:%s', found.score, found[PAGE])
        end
        found[#found + 1], found.score = name, tonumber(its_score)
      end
    end
    from = from + PAGE
  until #reply == 0
  return found
end

local function say_next(cell, say, ...)
  say('next: %s %s', cell.call, table.concat({...}, ' '))
end
