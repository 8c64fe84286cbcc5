-- put_fields(): append changed and deleted fields to `fields`, the fields of an entry of the feed. `changed` is a flat
-- list of field and value; a deleted field has an empty value.
local function put_fields(fields, changed, removed)
  for _, value in ipairs(changed) do
    fields[#fields + 1] = value
  end
  for _, field in ipairs(removed) do
    fields[#fields + 1] = field
    fields[#fields + 1] = ''
  end
end
