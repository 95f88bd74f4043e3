--- Systems: made here; their methods, besides those of the core.
local check = require "troupe.check"
local core = require "troupe.core"
local dead_letters = require "troupe.dead_letters"
local events = require "troupe.events"
local inspect = require "troupe.inspect"
local log = require "troupe.log"
local metrics = require "troupe.metrics"
local refs = require "troupe.ref"
local reports = require "troupe.reports"
local selection = require "troupe.selection"
local systems = require "troupe.systems"
require "troupe.spawn"

---@class troupe.System
---@field name string
---@field log troupe.Log
---@field events troupe.Events
---@field dead_letters troupe.DeadLetters      those that are kept; raises without the option (DL-5)
---@field metrics troupe.Metrics              raises without the option (MET-1)
---@field spawn fun(self: troupe.System, behavior: troupe.Behavior, name?: string,
---  options?: troupe.SpawnOptions): troupe.Ref  a top-level actor, "$<n>" by default; raises
---  OptionsErrors at the caller's line (SPAWN-1)
---@field run fun(self: troupe.System)         until nothing can happen any more (SYS-9)
---@field terminate fun(self: troupe.System)   orderly; over on return, but in a handler (SYS-4)
---@field stats fun(self: troupe.System): table<string, integer>
---@field now fun(self: troupe.System): number  milliseconds since it began
---@field random fun(self: troupe.System): number  uniform in [0, 1), from the system's seed
local System = core.system_methods

---@class troupe.Task  a function that the runtime runs (ASK-11)
---@field await fun(self: troupe.Task, timeout_ms?: number): ...  what it returned, or nil, err
---@field cancel fun(self: troupe.Task): boolean  its wait ends with nil, CancelledError; the next
---  wait ends the task; true when that ends it early
---@field status fun(self: troupe.Task): "running" | "waiting" | "done" | "failed" | "cancelled"

---@class troupe.SystemOptions
---@field log_level? troupe.LogLevel | "off"             default "info"
---@field log? "text" | "json" | fun(record: table)      lines on stderr, or your function
---@field seed? integer             of everything random; default: unpredictable
---@field throughput? integer       messages an actor may handle in a turn; default 32
---@field drain_timeout_ms? number  how long terminate() lets actors drain; default 2000, 0: not
---@field slow_handler_ms? number   a handler that runs longer is reported; default 1000, 0: none;
---  none in virtual time either (DISP-4)
---@field escalate_to_root? "stop" | "terminate"  what a failure that escalates past a top-level
---  actor does: stops that actor (default), or terminates the system (SUP-10)
---@field dead_letters? { keep: integer }  how many dead letters are kept, the last; default: none
---@field metrics? boolean          count what the system does; default false (MET-1)

local options_schema = {
  log_level = log.rules.level,
  log = log.rules.sink,
  seed = check.integer(),
  throughput = check.integer { min = 1, max = 1000000, default = 32 },
  drain_timeout_ms = check.duration { zero = true, default = 2000 },
  slow_handler_ms = check.duration { zero = true, default = 1000 },
  escalate_to_root = check.one_of { "stop", "terminate", default = "stop" },
  dead_letters = check.record { keep = check.integer { min = 1, required = true } },
  metrics = check.boolean { default = false },
}

local name_rule = {
  expected = "a letter followed by letters, digits, - and _",
  test = function(value)
    return type(value) == "string" and value:find("^%a[%w_-]*$") ~= nil, value
  end,
}

-- Kinds that are logged, whoever subscribes; dead letters only where their level is on, or where
-- they are kept.
local always = { "actor_failed", "hook_failed", "warning" }

local function interest(state)
  local kinds = { dead_letter = state.dead_letters ~= nil or state.log:enabled("info") }
  for _, kind in ipairs(always) do kinds[kind] = true end
  for kind in next, state.subscribed do kinds[kind] = true end
  if next(state.subscribed) then kinds.actor_stopped = true end -- to unsubscribe what stopped
  return kinds
end

local function new_events(state)
  return events.new {
    is_ref = core.is_ref,
    tell = core.tell_event,
    on_error = function(traceback, kind)
      state.log:write("error", state.log.path, ("a subscriber to %s raised"):format(kind),
        { traceback = traceback })
    end,
    on_interest = function(kind, wanted)
      state.subscribed[kind] = wanted or nil
      core.want_events(state.system, interest(state))
    end,
  }
end

local system = {}

--- Makes a system; for `troupe.system` and the test kit, whose caller the errors name.
---@param name string
---@param options troupe.SystemOptions?
---@param mode { virtual: boolean?, shuffle: boolean? }  virtual: time stands still until it is told
---  to go on; shuffle: the seed draws whose turn comes next
---@return troupe.System
---@raise OptionsError
function system.new(name, options, mode)
  check.argument("system", "the name", name, name_rule, 3)
  local values = check.options("system", options, options_schema, 3)
  local state = { subscribed = {}, name = name }
  state.log = log.new(("troupe://%s/"):format(name), function()
    return core.wall_clock(state.system)
  end, { level = values.log_level, sink = values.log })
  state.events = new_events(state)
  if values.dead_letters then
    state.dead_letters = dead_letters.new(state, values.dead_letters.keep)
  end
  if values.metrics then state.metrics = metrics.new(state) end
  local dispatch
  dispatch, state.flush = reports.dispatcher(state.log, state.events,
    function(seconds, fn) core.schedule(state.system, fn, seconds * 1000, 0, true) end,
    state.dead_letters)
  state.system = core.new_system {
    name = name,
    seed = values.seed,
    throughput = values.throughput,
    drain_timeout_ms = values.drain_timeout_ms,
    slow_handler_ms = values.slow_handler_ms,
    escalate_ends = values.escalate_to_root == "terminate",
    virtual = mode.virtual,
    shuffle = mode.shuffle,
    metrics = values.metrics,
    on_event = dispatch,
  }
  systems.set(state.system, state)
  core.want_events(state.system, interest(state))
  return state.system
end

local fields = {
  name = function(state) return state.name end,
  log = function(state) return state.log end,
  events = function(state) return state.events end,
  dead_letters = function(state)
    if state.dead_letters then return state.dead_letters end
    check.fail("system.dead_letters",
      "none are kept; make the system with dead_letters = { keep = n }", 4)
  end,
  metrics = function(state)
    if state.metrics then return state.metrics end
    check.fail("system.metrics", "there are none; make the system with metrics = true", 4)
  end,
}

local metatable = core.system_metatable

core.open_system(function(self, key)
  local field = fields[key]
  return field and field(systems.state(self))
end)

function metatable.__tostring(self) return ("troupe.system (%s)"):format(self.name) end

function metatable.__close(self) self:terminate() end

metatable.__metatable = "troupe.system"

--- Runs a function as a task: a coroutine that may wait.  (ASK-11)
---@param fn function
---@param ... any  its arguments
---@return troupe.Task
---@raise OptionsError at the caller's line
System.go = core.go

--- Stops an actor after the mail it has, as `ref:stop()`.
---@param ref troupe.Ref
function System:stop(ref)
  check.argument("stop", "the actor", ref, refs.rule, 2)
  ref:stop()
end

--- Actors by their path.  (SEL-1)
---@param path string | troupe.Path  "/user/a", or the full text
---@return troupe.Selection
---@raise OptionsError at the caller's line
function System:actor_selection(path)
  local made = selection.new(self, path)
  return made
end

--- Every actor as it is now: a list, parents first, of `ref`, `path`, `behavior` (where its
--- function was defined, or which router it is), `state`, `queued` and `restarts`. `tostring` shows
--- it as a tree.  (INS-1)
---@return troupe.Tree
function System:tree() return inspect.tree(self) end

--- One actor as it is now: what `tree` tells of it, and more. `tostring` shows it.  (INS-1)
---@param ref troupe.Ref
---@return troupe.Inspection
---@raise OptionsError at the caller's line
function System:inspect(ref)
  check.argument("inspect", "the actor", ref, refs.rule, 2)
  if core.ref_system(ref) ~= self then
    check.fail("inspect", "the actor must be of this system", 2)
  end
  return inspect.actor(ref) or check.fail("inspect", "a reply ref is no actor", 2)
end

local delay_rule = check.duration { zero = true }
local interval_rule = check.duration()
local function_rule = check.func()

local function schedule(self, where, delay, interval, fn)
  check.argument(where, "fn", fn, function_rule, 3)
  local handle = core.schedule(self, fn, delay, interval)
  if not handle then check.fail(where, "the system is terminating", 3) end
  return handle
end

--- Runs a function once, after `delay` milliseconds. It may wait.  (TMR-6)
---@param delay number  0 is the next turn
---@param fn function
---@return { cancel: fun(self): boolean }  cancel gives true only when it prevented something
---@raise OptionsError at the caller's line
---@type fun(self: troupe.System, delay: number, fn: function): troupe.Timer
System.schedule_once = core.schedule_once

--- What the core calls when it does not take the arguments of schedule_once as they are. Raises,
--- unless they are fine; the caller is behind the core.
function system.check_schedule(delay, fn, terminating)
  check.argument("schedule_once", "delay", delay, delay_rule, 3)
  check.argument("schedule_once", "fn", fn, function_rule, 3)
  if terminating then check.fail("schedule_once", "the system is terminating", 3) end
end

--- Runs a function every `interval` milliseconds, without drift.  (TMR-6)
---@param interval number
---@param fn function
---@param initial? number  until the first; default: the interval
---@return { cancel: fun(self): boolean }
---@raise OptionsError at the caller's line
function System:schedule_every(interval, fn, initial)
  check.argument("schedule_every", "interval", interval, interval_rule, 2)
  if initial == nil then initial = interval end
  check.argument("schedule_every", "initial", initial, delay_rule, 2)
  local handle = schedule(self, "schedule_every", initial, interval, fn)
  return handle
end

--- The system is not driven for now: what the log has held back is said.
function system.at_rest(at)
  local state = systems.state(at)
  if state then state.flush() end
end

--- What the core needs of the Lua side for tasks and coroutines that failed.
function system.unawaited(what)
  return function(at, reason, traceback)
    local state = systems.state(at)
    if state then reports.unawaited(state.log, what, reason, traceback) end
  end
end

return system
