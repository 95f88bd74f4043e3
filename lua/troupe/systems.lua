--- What the Lua side keeps of each system: its log, its events. Found by the system, ends with it.
local systems = {}

local states = setmetatable({}, { __mode = "k" })

---@class troupe.SystemState
---@field log troupe.Log
---@field events troupe.Events
---@field dead_letters troupe.DeadLetters?  if they are kept
---@field metrics troupe.Metrics?  if it counts
---@field name string
---@field flush fun()  says what the log has held back

---@param system troupe.System
---@param state troupe.SystemState
function systems.set(system, state) states[system] = state end

---@param system troupe.System
---@return troupe.SystemState
function systems.state(system) return states[system] end

return systems
