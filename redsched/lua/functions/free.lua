-- rs_free: what is free by class on hosts that get claims. A cell of more than 500 hosts takes several calls: the last
-- line of each has the sums so far, and the next call adds to them.
-- include: pages
-- include: slots
local SUMS = '^([^=]+)=(%d+),(%d+),([^,]*),(%d+),(%d+)$'

-- Return the sums so far, by class; those of the hosts themselves are under `hosts`.
local function sums_of(arguments)
  local sums = {hosts = {free = 0, largest = 0, at = '', capacity = 0, hosts = 0}}
  for number = 3, #arguments do
    local class, free, largest, at, capacity, hosts = string.match(arguments[number], SUMS)
    if not class then
      refuse(arguments[number] .. ' is no sum: take the whole last line of the call before')
    end
    sums[class] = {free = free + 0, largest = largest + 0, at = at, capacity = capacity + 0, hosts = hosts + 0}
  end
  return sums
end

local function add_host(sums, name, hash, slots, wanted)
  local counted = {}
  for _, slot in ipairs(slots) do
    local class = class_of(slot)
    if wanted == 'ALL' or wanted == class then
      local of, sum = slot_of(hash, slot), sums[class] or {free = 0, largest = 0, at = '', capacity = 0, hosts = 0}
      sums[class] = sum
      sum.free, sum.capacity = sum.free + of.free, sum.capacity + of.capacity
      local most = largest_fit(hash, slot, of.free)
      if most > sum.largest then
        sum.largest, sum.at = most, name
      end
      if of.free > 0 and not counted[class] then
        sum.hosts, counted[class] = sum.hosts + 1, true
      end
    end
  end
end

local function say_sums(cell, say, sums, wanted, rest)
  local classes, words = {}, {}
  for class, of in pairs(sums) do
    classes[#classes + 1] = class
    words[#words + 1] = string.format('%s=%.0f,%.0f,%s,%.0f,%.0f', class, of.free, of.largest, of.at, of.capacity,
      of.hosts)
  end
  table.sort(classes)
  table.sort(words)
  for _, class in ipairs(classes) do
    local of = sums[class]
    if class ~= 'hosts' then
      say('%-14s %9.0f of %.0f on %d hosts, largest %.0f %s', class, of.free, of.capacity, of.hosts, of.largest,
        of.at ~= '' and 'on ' .. of.at or '')
    end
  end
  say('%d of %d hosts get claims', sums.hosts.hosts, sums.hosts.capacity)
  if rest then
    say_next(cell, say, wanted, rest, unpack(words))
  end
end

register('rs_free', ' [CLASS|ALL] [CURSOR SUMS]', 0, 'What is free by class, on hosts that get claims?',
  function(cell, arguments, say)
    local wanted, sums = arguments[1] or 'ALL', sums_of(arguments)
    local rest = each_host(cell, arguments[2], function(name, hash, slots)
      sums.hosts.capacity = sums.hosts.capacity + 1
      if state_of(cell, hash) == 'OPEN' then
        sums.hosts.hosts = sums.hosts.hosts + 1
        add_host(sums, name, hash, slots, wanted)
      end
    end)
    say_sums(cell, say, sums, wanted, rest)
  end)
