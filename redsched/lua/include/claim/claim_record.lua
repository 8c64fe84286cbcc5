-- A claim's hash as a table, and back.
--
-- A claim keeps its id for life. Its placements are its stays on hosts, each named by the token that it was placed with
-- (`placed`). One of them, the main one, is in plain fields: a common claim never has another. The others are beside it
-- as `placement.<placed>.<field>`.
--   claim       id, key, exists, fields (what belongs to no placement), placements by name, tombstone (the placement
--               fields of a claim without any: where it was last), stored (the hash as it was read)
--   placement   placed, root, token, host, state, amounts, resizing_to (slot -> amount), counted (topology -> domain),
--               and of PLAIN_FIELDS whatever it has
-- `root` is the placement that it descends from by moves and retries; its own name after a claim or an unshelve.
-- include: claim_fields
-- include: fence
-- include: in_chunks
-- include: read_hash
-- include: token
-- include: to_int
local PREFIX = 'placement.'
local BY_NAME = {['amount'] = 'amounts', ['resizing_to'] = 'resizing_to', ['counted'] = 'counted'}
local LIVING = {claimed = true, starting = true, active = true, ending = true}

local function new_placement(fields)
  fields.amounts, fields.resizing_to, fields.counted = {}, {}, {}
  return fields
end

-- Put one field of a hash into a placement; false for a field of the claim itself.
local function put_field(placement, field, value)
  if PLAIN_FIELDS[field] then
    placement[field] = value
    return true
  end
  local kind, name = string.match(field, '^([%l_]+)%.(.+)$')
  if not BY_NAME[kind] then
    return false
  elseif kind ~= 'counted' then
    local amount = to_int(value, 0, -1)
    placement.unreadable = placement.unreadable or amount < 0
    value = math.max(0, amount)
  end
  placement[BY_NAME[kind]][name] = value
  return true
end

-- Return whether placement a comes after b, compared by root, then by name.
local function ranks_above(a, b)
  if a.root ~= b.root then
    return newer(a.root, b.root)
  end
  return newer(a.placed, b.placed)
end

-- Return a claim's placements, the highest last, so that a script's effect does not depend on the order of a table's
-- keys.
local function in_order(claim)
  local list = {}
  for _, placement in pairs(claim.placements) do
    list[#list + 1] = placement
  end
  if #list > 1 then
    table.sort(list, function(a, b) return ranks_above(b, a) end)
  end
  return list
end

local function raise_current(claim, placement)
  if not claim.current or ranks_above(placement, claim.current) then
    claim.current = {placed = placement.placed, root = placement.root}
  end
end

local function add_placement(claim, placement)
  placement.placed = placement.placed or placement.token
  placement.root = placement.root or placement.placed
  claim.placements[placement.placed] = placement
  if placement.state == 'active' then
    raise_current(claim, placement)
  end
end

local function parse_claim(id, key, stored, exists)
  local claim = {id = id, key = key, stored = stored, exists = exists, fields = {}, placements = {}}
  local main, others = new_placement({}), {}
  for field, value in pairs(stored) do
    local placed, name
    if string.sub(field, 1, #PREFIX) == PREFIX then
      placed, name = string.match(field, '^placement%.(%d+%-%w+%.%d+)%.(.+)$')
    end
    if placed then
      others[placed] = others[placed] or new_placement({placed = placed})
      put_field(others[placed], name, value)
    elseif not put_field(main, field, value) then
      claim.fields[field] = value
    end
  end
  if stored.current then
    claim.current = {placed = stored.current, root = stored.current_root or stored.current}
  end
  claim.fields.current, claim.fields.current_root = nil, nil
  if LIVING[main.state] then
    add_placement(claim, main)
  else
    main.placed = main.placed or main.token
    main.root = main.root or main.placed
    claim.tombstone = main
  end
  for _, placement in pairs(others) do
    if LIVING[placement.state] then
      add_placement(claim, placement)
    end
  end
  return claim
end

local function load_claim(key, id)
  local stored, exists = read_hash(key)
  return parse_claim(id, key, stored, exists)
end

-- Return whether a placement is no longer wanted: its claim was closed after it was placed, or a later placement has
-- been active.
local function is_doomed(claim, placement)
  local closed = claim.fields.closed
  return (closed and not newer(placement.root, closed))
    or (claim.current and ranks_above(claim.current, placement)) or false
end

local ACTIVE, WANTED, ENDING, UNWANTED = 1, 2, 3, 4

local function precedence(claim, placement)
  if placement.state == 'active' and claim.current and claim.current.placed == placement.placed then
    return ACTIVE
  elseif placement.state == 'ending' then
    return ENDING
  end
  return is_doomed(claim, placement) and UNWANTED or WANTED
end

-- Return the placement in plain fields: the current one while it is active; else the first wanted one, because the
-- claim stays there until the target of its move is active; else one that is ending. An unwanted one that no scheduler
-- has released yet comes last: otherwise the claim would look as if it were to stay there.
local function main_of(claim)
  local main, best
  for _, placement in pairs(claim.placements) do
    local own = precedence(claim, placement)
    if not main or own < best or (own == best and ranks_above(main, placement)) then
      main, best = placement, own
    end
  end
  return main
end

local function put_placement(flat, placement, prefix)
  for field in pairs(PLAIN_FIELDS) do
    flat[prefix .. field] = placement[field]
  end
  if placement.root == placement.placed then
    flat[prefix .. 'root'] = nil
  end
  if prefix ~= '' or placement.placed == placement.token then
    flat[prefix .. 'placed'] = nil
  end
  for slot, amount in pairs(placement.amounts) do
    flat[prefix .. 'amount.' .. slot] = text(amount)
  end
  for slot, amount in pairs(placement.resizing_to) do
    flat[prefix .. 'resizing_to.' .. slot] = text(amount)
  end
  for topology, domain in pairs(placement.counted) do
    flat[prefix .. 'counted.' .. topology] = domain
  end
end

-- Return the claim as the flat hash to be stored. `current` is left out if an active placement implies it.
local function render_claim(claim)
  local flat, main = {}, main_of(claim)
  for field, value in pairs(claim.fields) do
    flat[field] = value
  end
  local current = claim.current and claim.placements[claim.current.placed]
  if claim.current and not (current and current.state == 'active') then
    flat.current = claim.current.placed
    flat.current_root = claim.current.root ~= claim.current.placed and claim.current.root or nil
  end
  put_placement(flat, main or claim.tombstone, '')
  for _, placement in pairs(claim.placements) do
    if placement ~= main then
      put_placement(flat, placement, PREFIX .. placement.placed .. '.')
    end
  end
  return flat
end

-- Write the changed fields of a claim, and never replace the key as a whole: in a slot that is being migrated a deleted
-- key cannot be written again. An amount that was made unreadable by hand stays as it is.
local function write_claim_record(claim)
  local flat, set, gone = render_claim(claim), {}, {}
  for field, value in pairs(flat) do
    local before = claim.stored[field]
    if before ~= value and not (value == '0' and before and to_int(before, 0, -1) == -1) then
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  for field in pairs(claim.stored) do
    if not flat[field] then
      gone[#gone + 1] = field
    end
  end
  in_chunks('HSET', claim.key, set)
  in_chunks('HDEL', claim.key, gone)
  claim.stored, claim.exists = flat, true
end
