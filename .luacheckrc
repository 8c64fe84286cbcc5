-- For the composed scripts: scripts/test writes them to build/lua.
std = "lua51"
read_globals = { "redis", "cjson", "KEYS", "ARGV" }
max_line_length = 120
-- 211: a script may bring in functions that it does not use; tests/unit/test_scripts.py finds those that none uses.
-- 581: `not (a <= b)` is not `a > b`: a NaN from a damaged field must not pass (include/fit.lua).
ignore = { "211", "581" }
