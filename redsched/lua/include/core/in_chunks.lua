-- in_chunks(): run `command key ...list` in chunks, because unpack of some thousand values would raise an error in the
-- middle of a script. An empty list runs nothing.
local CHUNK = 500

local function in_chunks(command, key, list)
  for first = 1, #list, CHUNK do
    redis.call(command, key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
  end
end
