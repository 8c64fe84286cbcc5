-- The states in which a claim is not active yet: a lease runs, and its host counts it as starting.
local LEASED = {claimed = true, starting = true}
