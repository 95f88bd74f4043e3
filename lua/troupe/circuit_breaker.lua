--- Circuit breakers: what keeps failing is left alone for a while.  (CB-1)
---
--- Closed, a breaker lets calls through, and `max_failures` failures in a row open it. Open, it
--- refuses them at once. After `reset_timeout_ms` it is half-open: one call goes through, the
--- probe, whose success closes it and whose failure opens it again.
---
---     local breaker = troupe.circuit_breaker { max_failures = 5, reset_timeout_ms = 30000 }
---     local value, err = breaker:call(function() return replicas:ask("user-42", 200) end)
---
--- Every change of its state begins a new period, and a call counts in none but the period that it
--- began in: a late result changes nothing.
local check = require "troupe.check"
local core = require "troupe.core"
local errors = require "troupe.errors"
local text = require "troupe.text"

---@alias troupe.CircuitState "closed" | "open" | "half-open"

---@class troupe.CircuitBreakerOptions
---@field max_failures integer      failures in a row that open it, at least 1
---@field reset_timeout_ms number   how long it stays open
---@field call_timeout_ms? number   what takes longer has failed; default: nothing takes too long
---@field is_failure? fun(value: any, err: any): any  whether a call that gave `value, err` has
---  failed; `nil, err` when it raised err. Default: nil with an error, and whatever was raised. May
---  not wait

---@class troupe.CircuitBreaker
---@field private options troupe.CircuitBreakerOptions
---@field private current troupe.CircuitState
---@field private period integer        counts the changes of `current`
---@field private failures integer      in a row, while closed
---@field private probe? troupe.CircuitCall
---@field private system troupe.System?  by whose clock it is open
---@field private opened_at number?
---@field private listeners function[]
local CircuitBreaker = { __name = "troupe.CircuitBreaker" }
CircuitBreaker.__index = CircuitBreaker

local function traceback(reason) return debug.traceback(text.of(reason), 2) end

local function change(self, to, system)
  local from = self.current
  self.current, self.period = to, self.period + 1
  self.failures, self.probe = 0, nil
  if to == "open" then self.system, self.opened_at = system, system:now() end
  if to == "closed" then self.system, self.opened_at = nil, nil end
  for _, listener in ipairs(table.move(self.listeners, 1, #self.listeners, 1, {})) do
    local ok, trace = xpcall(listener, traceback, from, to)
    if not ok then
      system.log:error("a listener to a circuit breaker raised", { traceback = trace })
    end
  end
end

local function remaining_ms(self)
  return math.max(0, self.opened_at + self.options.reset_timeout_ms - self.system:now())
end

--- Its state. An open one whose time is over becomes half-open when somebody looks or calls.
---@return troupe.CircuitState
function CircuitBreaker:state()
  if self.current == "open" and remaining_ms(self) == 0 then
    change(self, "half-open", self.system)
  end
  return self.current
end

-- Calls -------------------------------------------------------------------------------------------

---@class troupe.CircuitCall  one that was let through, closed when its caller is done with it
---@field breaker troupe.CircuitBreaker
---@field system troupe.System  of the caller
---@field period integer
---@field over boolean          its outcome is known
---@field task troupe.Task?     that runs it, when it may take too long
local Call = {}

local function refusal(self)
  local ms = self.current == "open" and remaining_ms(self) or 0
  local message = "the circuit breaker is half-open and tries another call"
  if ms > 0 then message = ("the circuit breaker is open for another %.14gms"):format(ms) end
  return errors.new("CircuitBreakerOpenError", message, { remaining_ms = ms })
end

local function admit(self, system)
  if self:state() == "open" or self.probe then return nil, refusal(self) end
  local call = setmetatable({
    breaker = self,
    system = system,
    period = self.period,
    over = false,
  }, Call)
  if self.current == "half-open" then self.probe = call end
  return call
end

-- The outcome of a call is known.
local function count(call, failed)
  local self = call.breaker
  call.over = true
  if call.period ~= self.period then return end
  if failed then
    self.failures = self.failures + 1
    local opens = self.current == "half-open" or self.failures >= self.options.max_failures
    if opens then change(self, "open", call.system) end
  elseif self.current == "half-open" then
    change(self, "closed", call.system)
  else
    self.failures = 0
  end
end

-- Nobody waits for the call any more. That tells nothing of what it called; the next one may try.
local function give_up(call)
  call.over = true
  if call.breaker.probe == call then call.breaker.probe = nil end
  if call.task then call.task:cancel() end
end

-- A predicate that raises tells nothing good: the call counts as a failure.
local function has_failed(call, raised, value, err)
  local is_failure = call.breaker.options.is_failure
  if not is_failure then return raised or value == nil and err end
  local ok, verdict = xpcall(is_failure, traceback, value, err)
  if ok then return verdict end
  call.system.log:error("is_failure of a circuit breaker raised", { traceback = verdict })
  return true
end

local function settle(call, raised, value, err)
  if value == nil and errors.is(err, "CancelledError") then return give_up(call) end
  count(call, has_failed(call, raised, value, err))
end

local function returned(call, ...)
  settle(call, false, ...)
  return ...
end

-- The function has raised, or the coroutine is closed in the middle of the call.
function Call:__close(reason)
  if self.over then return end
  if reason == nil then give_up(self) else settle(self, true, nil, reason) end
end

-- What came of the function; raised again when nobody is there to see it, so that it is logged.
local function run(call, fn, ...)
  local result = table.pack(pcall(fn, ...))
  local ok, reason = result[1], result[2]
  if call.over and not ok and not errors.is(reason, "CancelledError") then error(reason, 0) end
  return result
end

local function call_in_time(call, fn, ...)
  local timeout_ms = call.breaker.options.call_timeout_ms
  call.task = call.system:go(run, call, fn, ...)
  local result, err = call.task:await(timeout_ms)
  if result then
    if not result[1] then error(result[2], 0) end
    return returned(call, table.unpack(result, 2, result.n))
  end
  if not errors.is(err, "TimeoutError") then return nil, err end -- the wait was cut short
  count(call, true)
  return nil, errors.new("CircuitBreakerTimeoutError",
    ("no result within %.14gms"):format(timeout_ms), { timeout_ms = timeout_ms })
end

local function_rule = check.func()

--- Calls a function, in a handler or a task, unless the breaker is open. The function may wait.
---
--- What it returns is returned, and what it raises is raised on. One that takes longer than
--- `call_timeout_ms` runs on, as a task, and what comes of it counts no more.
---@param fn function
---@param ... any  its arguments
---@return any ...  what it returned; nil and an error when it was not called or took too long:
---  CircuitBreakerOpenError (`remaining_ms`: until it is half-open), CircuitBreakerTimeoutError
---  (`timeout_ms`)
---@raise OptionsError at the caller's line
function CircuitBreaker:call(fn, ...)
  check.argument("circuit_breaker:call", "fn", fn, function_rule, 2)
  local system = core.running_system()
  if not system then
    check.fail("circuit_breaker:call", "to be called in a handler or a task", 2)
  end
  local call <close>, refused = admit(self, system)
  if refused then return nil, refused end
  if self.options.call_timeout_ms then return call_in_time(call, fn, ...) end
  return returned(call, fn(...))
end

--- Has a function told of every change of state. It may not wait; one that raises is logged.
---@param listener fun(from: troupe.CircuitState, to: troupe.CircuitState)
---@raise OptionsError at the caller's line
function CircuitBreaker:on_change(listener)
  check.argument("circuit_breaker:on_change", "the listener", listener, function_rule, 2)
  table.insert(self.listeners, listener)
end

-- Making one --------------------------------------------------------------------------------------

local schema = {
  max_failures = check.integer { min = 1, required = true },
  reset_timeout_ms = check.duration { required = true },
  call_timeout_ms = check.duration(),
  is_failure = check.func(),
}

--- Makes a circuit breaker, closed.  (CB-1)
---@param options troupe.CircuitBreakerOptions
---@return troupe.CircuitBreaker
---@raise OptionsError at the caller's line
return function(options)
  return setmetatable({
    options = check.options("circuit_breaker", options, schema, 2),
    current = "closed",
    period = 1,
    failures = 0,
    listeners = {},
  }, CircuitBreaker)
end
