--- Troupe: actors for Lua, with a C core on libuv.
local check = require "troupe.check"
local core = require "troupe.core"
local errors = require "troupe.errors"
local events = require "troupe.events"
local fault = require "troupe.fault"
local messages = require "troupe.messages"
local recipe = require "troupe.recipe"
local refs = require "troupe.ref"
local supervision = require "troupe.supervision"
local system = require "troupe.system"

core.setup {
  home = debug.getinfo(1, "S").source:match("^(.*)init%.lua$"),
  error_metatable = errors.Error,
  dead_letter_metatable = events.DeadLetter,
  broadcast_metatable = messages.Broadcast,
  signal_metatable = messages.Signal,
  get_routees_metatable = getmetatable(messages.GetRoutees),
  add_routees_metatable = messages.AddRoutees,
  remove_routees_metatable = messages.RemoveRoutees,
  misuse = function(message) return errors.new("OptionsError", message) end,
  fault = fault.build,
  broadcast = messages.Broadcast,
  signal = messages.signal,
  pool_request = messages.pool_request,
  terminated = messages.terminated,
  receive_timeout = messages.ReceiveTimeout,
  initialization_error = fault.initialization,
  task_failed = system.unawaited("a task"),
  coroutine_failed = system.unawaited("a coroutine"),
  at_rest = system.at_rest,
  check_schedule = system.check_schedule,
}
require "troupe.actor"
local timeout_rule = check.duration()

---@class troupe
local troupe = {
  _VERSION = "troupe 0.1.0",
  Router = require "troupe.router",
  Broadcast = messages.Broadcast,
  PoisonPill = messages.PoisonPill,
  Kill = messages.Kill,
  GetRoutees = messages.GetRoutees,
  AddRoutees = messages.AddRoutees,
  RemoveRoutees = messages.RemoveRoutees,
  Terminated = messages.Terminated,
  ReceiveTimeout = messages.ReceiveTimeout,
  is = messages.is,
  actor = recipe.actor,
  error = errors.new,
  is_error = errors.is,
  one_for_one = supervision.one_for_one,
  all_for_one = supervision.all_for_one,
  decide_by = supervision.decide_by,
  default_strategy = supervision.default_strategy,
  stopping_strategy = supervision.stopping_strategy,
  escalating_strategy = supervision.escalating_strategy,
  circuit_breaker = require "troupe.circuit_breaker",
  backoff_supervisor = require "troupe.backoff_supervisor",
  retry = require "troupe.retry",
  --- The system whose handler or task runs here, or nil.
  ---@type fun(): troupe.System?
  running_system = core.running_system,
  --- Waits for `ms` milliseconds, in a handler or a task; others run meanwhile. Gives nothing, or
  --- nil and an error when the wait was cut short.  (PAT-1)
  ---@type fun(ms: number): nil, troupe.Error?
  sleep = core.sleep,
}

--- Stops an actor after the mail it has; hard, when that takes longer than `timeout_ms`.  (STOP-5)
---@param ref troupe.Ref
---@param timeout_ms number
---@return boolean in_time
---@raise OptionsError at the caller's line
function troupe.graceful_stop(ref, timeout_ms)
  check.argument("graceful_stop", "the actor", ref, refs.rule, 2)
  check.argument("graceful_stop", "timeout_ms", timeout_ms, timeout_rule, 2)
  core.check_await_stop(ref, "graceful_stop") -- before anything has happened
  ref:stop()
  if ref:await_stop(timeout_ms) then return true end
  core.stop_now(ref)
  return false
end

--- Makes a system.  (SYS-1)
---@param name string  a letter followed by letters, digits, - and _
---@param options? troupe.SystemOptions
---@return troupe.System
---@raise OptionsError at the caller's line
function troupe.system(name, options)
  local made = system.new(name, options, {})
  return made
end

return troupe
