-- merge(): which claims a host holds once its journal and the store have been put together.
--
-- Each entry gets `stored`, what the store has of it and counts, and each kept one `claim`, the fields of its hash.
-- `restoring` is false where the store decides: a claim that only the journal knows has ended then, instead of coming
-- back. `was`: its state in the store before. `taken` are those of the kept that the store has on
-- another host by an earlier placing; without `complete` the keys of such a host are missing. `known`: the host's hash.
-- include: read_hash
-- include: token
local RANK = {claimed = 1, starting = 2, active = 3, ending = 4}

-- What a journal does not know of a claim, or knew when it was taken up.
local STORES_OWN = {'why', 'claimed_at_ms', 'host', 'origin', 'next', 'next_token', 'former', 'former_host',
  'former_token', 'former_why', 'by_ms', 'arrived', 'came_from', 'gang', 'fell', 'final'}

-- The journal's word counts where its placing is the later one; else the store's, with the state further along.
local function joined(stored, held)
  if not newer(held.token, stored.token) then
    stored.state = RANK[held.state] > RANK[stored.state] and held.state or stored.state
    return stored
  end
  for _, field in ipairs(STORES_OWN) do
    held[field] = stored[field]
  end
  held.why = held.state == 'ending' and stored.why or nil
  return held
end

-- Is a journal's placing over: by a later one, by the claim that succeeded it, because its host was written off, or
-- because it was released by force while its host was away?
local function is_passed(entry, stored, known)
  local latest = ''
  for _, other in pairs({stored.token or '', stored.next_token or '', known.lost_token or '',
    known['dropped.' .. entry.id] or ''}) do
    latest = newer(other, latest) and other or latest
  end
  return latest ~= '' and not newer(entry.token, latest)
end

local function merge(entries, host, restoring, known)
  local merged = {kept = {}, ended = {}, drop = {}, taken = {}, complete = true}
  local function put(list, entry, claim)
    entry.claim = claim
    list[#list + 1] = entry
  end
  for _, entry in ipairs(entries) do
    local stored, exists = read_hash(entry.key)
    local here = exists and stored.state ~= 'ended' and stored.host == host
    local elsewhere = exists and stored.state ~= 'ended' and not here
    entry.stored = (here or elsewhere) and stored or nil
    entry.was = entry.stored and stored.state
    if entry.word == 'held' and here then
      put(merged.kept, entry, joined(stored, entry.fields))
    elseif entry.word == 'held' and restoring and not is_passed(entry, stored, known) then
      entry.fields.host = host
      put(merged.kept, entry, entry.fields)
      if elsewhere then
        entry.fields.gang, entry.fields.fell = stored.gang, stored.fell
        merged.taken[#merged.taken + 1] = entry
        merged.complete = merged.complete and entry.rival ~= nil and entry.rival.name == stored.host
      end
    elseif entry.word == 'held' then
      merged.drop[#merged.drop + 1] = entry.id
    elseif entry.word == 'ended' and here and not newer(stored.token, entry.token) then
      put(merged.ended, entry, stored)
    elseif here then
      -- The journal has lost it, or never had it: hinted at again, to be taken up once more.
      entry.lost = stored.state ~= 'ending'
      put(merged.kept, entry, stored)
    end
  end
  return merged
end

-- The state that a kept claim has from now on.
local function state_of(entry)
  return entry.lost and 'claimed' or entry.claim.state
end
