--- Troupe: actors for Lua, with a C core on libuv.
local core = require "troupe.core"
local errors = require "troupe.errors"
local events = require "troupe.events"
local fault = require "troupe.fault"
local messages = require "troupe.messages"
local recipe = require "troupe.recipe"
local supervision = require "troupe.supervision"
local system = require "troupe.system"

core.setup {
  error_metatable = errors.Error,
  dead_letter_metatable = events.DeadLetter,
  broadcast_metatable = messages.Broadcast,
  signal_metatable = messages.Signal,
  misuse = function(message) return errors.new("OptionsError", message) end,
  fault = fault.build,
  broadcast = messages.broadcast,
  signal = messages.signal,
  initialization_error = fault.initialization,
  task_failed = system.unawaited("a task"),
  coroutine_failed = system.unawaited("a coroutine"),
  at_rest = system.at_rest,
}
require "troupe.actor"
require "troupe.ref"

---@class troupe
local troupe = {
  _VERSION = "troupe 0.1.0",
  Router = require "troupe.router",
  Broadcast = messages.broadcast,
  PoisonPill = messages.PoisonPill,
  Kill = messages.Kill,
  actor = recipe.actor,
  error = errors.new,
  is_error = errors.is,
  one_for_one = supervision.one_for_one,
  default_strategy = supervision.default_strategy,
  stopping_strategy = supervision.stopping_strategy,
  escalating_strategy = supervision.escalating_strategy,
  --- Waits for `ms` milliseconds, in a handler or a task; others run meanwhile. Gives nothing, or
  --- nil and an error when the wait was cut short.  (PAT-1)
  ---@type fun(ms: number): nil, troupe.Error?
  sleep = core.sleep,
}

--- Makes a system.  (SYS-1)
---@param name string  a letter followed by letters, digits, - and _
---@param options? troupe.SystemOptions
---@return troupe.System
---@raise OptionsError at the caller's line
function troupe.system(name, options)
  local made = system.new(name, options, false)
  return made
end

return troupe
