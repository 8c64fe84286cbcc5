-- operator_tag(): the tag of what operators set on a host, as redsched/store/codec/tags.py computes it. `host` has its
-- fields by name; one that is absent may be nil or false.
local function operator_tag(host)
  local fields = {host.status or '', host.draining or '', host.drain_deadline_ms or '', host.drain_then or '',
    host.epoch == 'lost' and 'lost' or ''}
  if host.status_reason and host.status_reason ~= '' then
    fields[#fields + 1] = host.status_reason
  end
  return redis.sha1hex(table.concat(fields, '\0'))
end
