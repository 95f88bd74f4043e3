--- Supervision strategies: what a supervisor does about a child that failed.  (SUP-1)
local check = require "troupe.check"

local supervision = {}

---@alias troupe.Directive "resume" | "restart" | "stop" | "escalate"

---@class troupe.SupervisorStrategy
---@field decider? fun(reason: any): troupe.Directive
---@field directive troupe.Directive
---@field all_for_one boolean
---@field max_restarts integer
---@field within_ms number
local Strategy = { __name = "troupe.SupervisorStrategy" }

---@class troupe.StrategyOptions
---@field decider? troupe.Directive | fun(reason: any): troupe.Directive  default "restart"; a
---  function may not wait
---@field max_restarts? integer  granted to each child within `within_ms`; default 10, -1: no limit
---@field within_ms? number      the sliding window; default 60000

local directives = { resume = true, restart = true, stop = true, escalate = true }
local callable = check.func()

local decider_rule = {
  expected = 'a function, or one of "resume", "restart", "stop", "escalate"',
  test = function(value)
    if directives[value] then return true, value end
    return callable.test(value)
  end,
  default = "restart",
}

local window_rule = {
  expected = "a positive number of milliseconds",
  test = function(value) return type(value) == "number" and value > 0, value end,
  default = 60000,
}

local schema = {
  decider = decider_rule,
  max_restarts = check.integer { min = -1, default = 10 },
  within_ms = window_rule,
}

local function strategy(where, all_for_one, options)
  local values = check.options(where, options, schema, 3)
  local decides = not directives[values.decider]
  return setmetatable({
    all_for_one = all_for_one,
    decider = decides and values.decider or nil,
    directive = decides and "restart" or values.decider,
    max_restarts = values.max_restarts,
    within_ms = values.within_ms,
  }, Strategy)
end

--- A strategy that deals with the failed child alone.  (SUP-1, SUP-4, SUP-5)
---
--- The failure after the last restart that is granted stops the child.
---@param options? troupe.StrategyOptions
---@return troupe.SupervisorStrategy
---@raise OptionsError at the caller's line
function supervision.one_for_one(options)
  local made = strategy("one_for_one", false, options)
  return made
end

--- A strategy whose directive is applied to every child of the supervisor: for children that are of
--- no use without each other.  (SUP-5, SUP-6)
---
--- Only the child that failed is charged for the restart. The failure after the last one that is
--- granted stops them all.
---@param options? troupe.StrategyOptions
---@return troupe.SupervisorStrategy
---@raise OptionsError at the caller's line
function supervision.all_for_one(options)
  local made = strategy("all_for_one", true, options)
  return made
end

--- What a `supervisor_strategy` must be.
supervision.rule = {
  expected = "a supervisor strategy, such as troupe.one_for_one{}",
  test = function(value) return getmetatable(value) == Strategy, value end,
}

--- Restart, at most 10 times in 60 seconds: for whoever says nothing.
supervision.default_strategy = supervision.one_for_one()

--- Stop whatever fails.
supervision.stopping_strategy = supervision.one_for_one { decider = "stop" }

--- Leave it to the parent's supervisor.
supervision.escalating_strategy = supervision.one_for_one { decider = "escalate" }

return supervision
