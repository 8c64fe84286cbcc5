-- with_rest(): append a list to a reply. `unpack` of some thousand values would raise an error.
local function with_rest(reply, rest)
  for _, value in ipairs(rest or {}) do
    reply[#reply + 1] = value
  end
  return reply
end
