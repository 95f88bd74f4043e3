--- Test kits for specs, and the leak ledger that looks at each of them after its test.
local core = require "troupe.core"
local testkit = require "troupe.testkit"

local M = {}

local COUNTERS = { "actors", "queued", "asks", "scatters", "timers", "tasks", "parked" }

-- Longer than any time-out in the specs but those that say so.
local LONG_MS = 120000

local function check_counters(kit, names, when)
  local stats = kit.system:stats()
  local left = {}
  for _, name in ipairs(names) do
    if stats[name] ~= 0 then left[#left + 1] = ("%s = %d"):format(name, stats[name]) end
  end
  assert(#left == 0, ("left behind %s: %s"):format(when, table.concat(left, ", ")))
end

--- Everything that began in the test has come to its own end when its actors have been stopped and
--- its time-outs are over, before the end of the system sweeps it away.
---@param kit troupe.Kit
function M.check_ledger(kit)
  for _, ref in ipairs(core.children(core.user_guardian(kit.system))) do ref:stop() end
  kit:advance(LONG_MS)
  check_counters(kit, COUNTERS, "when all actors had stopped")
  kit.system:terminate()
  check_counters(kit, { "anchored" }, "when the system had terminated")
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
    if kit then M.check_ledger(kit) end
  end)

  return function(options)
    kit = kit or testkit.system("demo", options)
    return kit
  end
end

return M
