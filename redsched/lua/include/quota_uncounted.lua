-- uncounted_answer(): what a script answers that cannot rely on it, or nil.
local function uncounted_answer(cell, ledger)
  if not ledger then
    return {'UNKNOWN', cell.epoch, cell.now_ms}
  elseif ledger.counted_in ~= cell.epoch then
    return {'SETTLING', cell.epoch, cell.now_ms}
  end
end
