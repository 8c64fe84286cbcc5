-- put_fields(): append changed and deleted fields to `told`, the fields of an entry of the feed. `changed` is a flat
-- list of field and value; a deleted field has an empty value.
local function put_fields(told, changed, removed)
  for _, value in ipairs(changed) do
    told[#told + 1] = value
  end
  for _, field in ipairs(removed) do
    told[#told + 1] = field
    told[#told + 1] = ''
  end
end
