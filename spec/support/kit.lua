--- Test kits for specs, and the leak ledger that looks at each of them after its test.
local testkit = require "troupe.testkit"

local M = {}

--- What must be back at nothing when a test ends and its system has terminated.
local LEDGER = { "actors", "queued", "asks", "scatters", "timers", "tasks", "parked", "anchored" }

local function check_ledger(kit)
  kit.system:terminate()
  local stats = kit.system:stats()
  local left = {}
  for _, name in ipairs(LEDGER) do
    if stats[name] ~= 0 then left[#left + 1] = ("%s = %d"):format(name, stats[name]) end
  end
  assert(#left == 0, "left behind: " .. table.concat(left, ", "))
end

--- Gives a function that gives the kit of the test that runs: a system named "demo", made on first
--- use, with the options of that call.
---@param before_each function
---@param after_each function
---@return fun(options?: troupe.SystemOptions): troupe.Kit
function M.each(before_each, after_each)
  local kit

  before_each(function() kit = nil end)

  after_each(function()
    if kit then check_ledger(kit) end
  end)

  return function(options)
    kit = kit or testkit.system("demo", options)
    return kit
  end
end

return M
