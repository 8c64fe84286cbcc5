-- note_gang_exit(): what the end of a claim means for the other members of its gang, all of which were active
-- (`gang_on_exit`). The claim keeps it as `gang_exit`, and stays in `reconcile` until a scheduler has applied it.
--   replace   this claim is pending, and the others have to be: a scheduler places all of them again at once
--   release   this claim has ended, and the others have to be released
-- An end by its owner concerns no other member. If its work was done while the rest of a gang with `replace` runs, only
-- this claim ends. While the gang is incomplete, gangs.lua has its rules.
-- include: claim_record
-- include: gangs
local function note_gang_exit(claim)
  local fields, before, how = claim.fields, claim.before, claim.fields.gang_on_exit
  local pending, ended = fields.retry_root, not next(claim.placements)
  if not how or claim.gang or not (pending or ended) then
    return
  elseif before.fields.retry_root == pending and (pending or not next(before.placements)) then
    return -- it was pending, or had ended, before this script
  elseif pending then
    fields.gang_exit = how == 'replace' and how or nil
    return
  end
  local end_reason = claim.tombstone.end_reason
  local ends_alone = BY_OWNER[end_reason] or (how == 'replace' and end_reason == 'work-ended')
  fields.gang_exit = not ends_alone and 'release' or nil
end
