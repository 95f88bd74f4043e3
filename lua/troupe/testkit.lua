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
local text = require "troupe.text"

local testkit = {}

---@class troupe.Kit
---@field system troupe.System
---@field logs table[]  the records logged so far: time, level, path, message, fields
---@field private name string
---@field private options troupe.SystemOptions
local Kit = { __name = "troupe.Kit" }
Kit.__index = Kit

-- A kit without a system yet, and the options for that: those of the user and what a kit adds.
local function prepare(name, options)
  local kit = setmetatable({ logs = {}, name = name, options = {} }, Kit)
  local own = { seed = 1, log = function(record) kit.logs[#kit.logs + 1] = record end }
  if type(options) == "table" then
    for key, value in next, options do kit.options[key], own[key] = value, value end
  elseif options ~= nil then
    own = options
  end
  return kit, own
end

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

local scenario_rule = check.func()
local explore_schema = {
  seeds = check.integer { min = 1, default = 100 },
  first = check.integer { default = 1 },
}

-- Runs a scenario under one seed, in a system of its own; gives how it failed.
local function try(self, scenario, seed)
  local kit, own = prepare(self.name, self.options)
  own.seed = seed
  local fresh <close> = system.new(self.name, own, { virtual = true, shuffle = true })
  kit.system = fresh
  local ok, failure = xpcall(scenario, function(reason)
    return debug.traceback(text.of(reason), 2)
  end, kit)
  return not ok and failure or nil
end

--- Runs a scenario under many schedules, and raises the failure of the first one that fails, with
--- the seed that runs it again.  (TK-3)
---
--- Each run has a kit of its own, with the options of this one but for the seed. Whose turn comes
--- next, and how long it lasts, is drawn by the seed; all else is as in any system.
---
---     kit:explore(function(fresh)
---       local account = fresh.system:spawn(new_account(), "account")
---       ...
---     end, { seeds = 1000 })
---@param scenario fun(kit: troupe.Kit)  fails by raising, as an assertion does
---@param options? { seeds: integer?, first: integer? }  how many seeds, default 100; the first of
---  them, default 1
---@raise OptionsError at the caller's line; what the scenario raised, as text
function Kit:explore(scenario, options)
  check.argument("explore", "the scenario", scenario, scenario_rule, 2)
  local values = check.options("explore", options, explore_schema, 2)
  for i = 0, values.seeds - 1 do
    local seed = values.first + i
    local failure = try(self, scenario, seed)
    if failure then
      error(("explore: seed %d fails; run it alone with { first = %d, seeds = 1 }\n%s"):format(
        seed, seed, failure), 2)
    end
  end
end

--- Makes a system in virtual time. Its log goes to `kit.logs`, unless `log` says otherwise.
---@param name string
---@param options? troupe.SystemOptions  `seed` is 1 by default
---@return troupe.Kit
---@raise OptionsError at the caller's line
function testkit.system(name, options)
  local kit, own = prepare(name, options)
  kit.system = system.new(name, own, { virtual = true })
  return kit
end

return testkit
