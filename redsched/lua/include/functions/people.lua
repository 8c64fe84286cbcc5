-- duration(): format a time in ms for people: 12s, 5m03s, 2h10m, 3d04h. moment(): how far a time is from now. ends():
-- when a lease ends or has ended. named(): a name, or a dash. pairs_text(): format amounts: MEMORY_MB=4096 VCPU=2.
local function duration(ms)
  local s = math.max(0, math.floor(ms / 1000))
  if s < 120 then
    return string.format('%ds', s)
  elseif s < 7200 then
    return string.format('%dm%02ds', math.floor(s / 60), s % 60)
  elseif s < 172800 then
    return string.format('%dh%02dm', math.floor(s / 3600), math.floor(s % 3600 / 60))
  end
  return string.format('%dd%02dh', math.floor(s / 86400), math.floor(s % 86400 / 3600))
end

local function moment(cell, at_ms)
  at_ms = tonumber(at_ms)
  if not at_ms then
    return 'at an unknown time'
  elseif at_ms > cell.now_ms then
    return 'in ' .. duration(at_ms - cell.now_ms)
  end
  return duration(cell.now_ms - at_ms) .. ' ago'
end

local function ends(cell, at_ms)
  at_ms = tonumber(at_ms)
  return ((at_ms or 0) > cell.now_ms and 'ends ' or 'ended ') .. moment(cell, at_ms)
end

local function named(name)
  return name and name ~= '' and name or '-'
end

local function pairs_text(amounts)
  local words = {}
  for slot, amount in pairs(amounts) do
    words[#words + 1] = slot .. '=' .. amount
  end
  table.sort(words)
  return #words > 0 and table.concat(words, ' ') or 'nothing'
end
