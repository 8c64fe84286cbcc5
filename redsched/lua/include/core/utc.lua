-- utc(): format a time (Unix, ms) for people: 2026-01-02T03:04:05Z.
local DAY_S = 24 * 3600

local function days_of(year, month)
  local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return ({31, is_leap and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31})[month]
end

local function utc(at_ms)
  local at_s = math.floor(at_ms / 1000)
  local days, second, year, month = math.floor(at_s / DAY_S), at_s % DAY_S, 1970, 1
  while days >= days_of(year, month) do
    days, month = days - days_of(year, month), month + 1
    if month > 12 then
      year, month = year + 1, 1
    end
  end
  return string.format('%04d-%02d-%02dT%02d:%02d:%02dZ', year, month, days + 1, math.floor(second / 3600),
    math.floor(second / 60) % 60, second % 60)
end
