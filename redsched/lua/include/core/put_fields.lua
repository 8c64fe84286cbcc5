-- put_fields(): append to `told`, what the feed is to say, those fields that change and those that go. `changed` is a
-- flat list of field and value; a field that goes is said to be empty.
local function put_fields(told, changed, removed)
  for _, value in ipairs(changed) do
    told[#told + 1] = value
  end
  for _, field in ipairs(removed) do
    told[#told + 1] = field
    told[#told + 1] = ''
  end
end
