--- Supervision strategies: what a supervisor does about a child that failed.  (SUP-1)
local check = require "troupe.check"
local errors = require "troupe.errors"

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

---@class troupe.Matches  first match wins
---@field [integer] { [1]: string | fun(reason: any): boolean, [2]: troupe.Directive }  the name of
---  an error value or a predicate, which may not wait; and what to do
---@field otherwise? troupe.Directive | fun(reason: any): troupe.Directive  default: "stop" for an
---  ActorInitializationError and an ActorKilledError, else "restart"

local directive_rule = check.one_of { "resume", "restart", "stop", "escalate" }

local match_rule = {
  expected = "the name of an error or a function",
  test = function(value)
    if type(value) == "string" then return value ~= "", value end
    return callable.test(value)
  end,
}

-- Akka's default decider.
local function decide_otherwise(reason)
  local in_vain = errors.is(reason, "ActorInitializationError")
    or errors.is(reason, "ActorKilledError")
  return in_vain and "stop" or "restart"
end

local matches_schema = {
  otherwise = {
    expected = decider_rule.expected,
    test = decider_rule.test,
    default = decide_otherwise,
  },
}

local function read_match(entry, number, level)
  if type(entry) ~= "table" then
    local message = 'match %d must be a pair such as { "SomeError", "stop" } (got %s)'
    check.fail("decide_by", message:format(number, check.show(entry)), level + 1)
  end
  for key in next, entry do
    if key ~= 1 and key ~= 2 then
      local message = "match %d must hold nothing but a match and a directive (got the key %s)"
      check.fail("decide_by", message:format(number, check.show(key)), level + 1)
    end
  end
  local at = ("match %d: the "):format(number)
  local match, directive = rawget(entry, 1), rawget(entry, 2)
  check.argument("decide_by", at .. "match", match, match_rule, level + 1)
  check.argument("decide_by", at .. "directive", directive, directive_rule, level + 1)
  if type(match) ~= "string" then return { holds = match, directive = directive } end
  return { holds = function(reason) return errors.is(reason, match) end, directive = directive }
end

local function read_matches(given, level)
  if type(given) ~= "table" then
    check.fail("decide_by", "matches must be a table (got " .. check.show(given) .. ")", level + 1)
  end
  local matches, options = {}, {}
  for i = 1, rawlen(given) do matches[i] = read_match(rawget(given, i), i, level + 1) end
  for key, value in next, given do
    if not matches[key] then options[key] = value end
  end
  local values = check.options("decide_by", options, matches_schema, level + 1)
  return matches, values.otherwise
end

--- A decider from a list of matches.  (SUP-2)
---
---     troupe.decide_by {
---       { "ConfigError", "stop" },
---       { function(reason) return reason == "busy" end, "resume" },
---       otherwise = "escalate",
---     }
---
--- A name matches as `troupe.is_error(reason, name)` does: a start that failed is an
--- ActorInitializationError, whatever its cause.
---@param matches troupe.Matches  read once
---@return fun(reason: any): troupe.Directive decider
---@raise OptionsError at the caller's line
function supervision.decide_by(matches)
  local list, otherwise = read_matches(matches, 2)
  return function(reason)
    for _, match in ipairs(list) do
      if match.holds(reason) then return match.directive end
    end
    return directives[otherwise] and otherwise or otherwise(reason)
  end
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
