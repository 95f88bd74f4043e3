--- The test kit: systems in virtual time, and probes in them.  (TK-1, TK-2)
---
--- Nothing in a kit's system sleeps or looks at the machine's clock: time stands still until the
--- test says so, and the same seed gives the same run.
---
---     local kit = testkit.system("demo")
---     local answer = kit:async(function() return ref:ask("slow") end)
---     kit:advance(20)
---     assert.are.equal("done", answer:await())
require "troupe"
local check = require "troupe.check"
local core = require "troupe.core"
local probe = require "troupe.probe"
local spawn = require "troupe.spawn"
local system = require "troupe.system"

local testkit = {}

---@class troupe.Kit
---@field system troupe.System
---@field logs table[]  the records logged so far: time, level, path, message, fields
local Kit = { __name = "troupe.Kit" }
Kit.__index = Kit

local time_rule = check.duration { zero = true }

--- Lets virtual time go on by `ms`, from deadline to deadline in due order, and runs all that
--- becomes possible.
---@param ms number
---@raise OptionsError at the caller's line
function Kit:advance(ms)
  check.argument("advance", "ms", ms, time_rule, 2)
  core.advance(self.system, ms)
end

--- Runs all that can run while time stands still.
function Kit:settle() core.settle(self.system) end

--- Virtual milliseconds since the kit was made.
---@return number
function Kit:now() return self.system:now() end

--- Starts a task, as `system:go`, and runs what can run while time stands still.
---@param fn function
---@param ... any
---@return troupe.Task
function Kit:async(fn, ...)
  local task = self.system:go(fn, ...)
  self:settle()
  return task
end

--- Spawns an actor whose mail the test looks at.  (TK-2)
---@param name? string  default: "$<n>"
---@return troupe.Probe
---@raise OptionsError at the caller's line
function Kit:probe(name)
  local made, behavior = probe.new(self)
  made.ref = spawn(core.user_guardian(self.system), behavior, name)
  return made
end

--- Makes a system in virtual time. Its log goes to `kit.logs`, unless `log` says otherwise.
---@param name string
---@param options? troupe.SystemOptions  `seed` is 1 by default
---@return troupe.Kit
---@raise OptionsError at the caller's line
function testkit.system(name, options)
  local kit = { logs = {} }
  local own = { seed = 1, log = function(record) kit.logs[#kit.logs + 1] = record end }
  if type(options) == "table" then
    for key, value in next, options do own[key] = value end
  elseif options ~= nil then
    own = options
  end
  kit.system = system.new(name, own, true)
  return setmetatable(kit, Kit)
end

return testkit
