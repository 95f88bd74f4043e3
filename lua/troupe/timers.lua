--- The timers of an actor.  (TMR-1 .. TMR-5)
local check = require "troupe.check"
local core = require "troupe.core"

---@class troupe.Timers
local Timers = { __name = "troupe.Timers" }
Timers.__index = Timers

local delay_rule = check.duration { zero = true }
local interval_rule = check.duration()

-- How a timer repeats, as the core knows it.
local ONCE, FIXED_DELAY, FIXED_RATE = 0, 1, 2

-- A number stays in the map when its timer is over; such are swept out before they are the most.
local SWEEP_FROM = 32

local timer_start, timer_cancel = core.timer_start, core.timer_cancel
local math_type, huge = math.type, math.huge

local function check_key(where, key)
  if key == nil or key ~= key then
    check.fail(where, "key must be neither nil nor NaN (got " .. check.show(key) .. ")", 3)
  end
end

-- What the checks ask, in few steps: timers are started often.
local function is_delay(value) return math_type(value) and value >= 0 and value < huge end

local function sweep(self)
  local live, held = core.timer_sweep(self.actor, self.numbers)
  self.numbers, self.held = live, held
  self.sweep_from, self.sweep_below = math.max(SWEEP_FROM, 2 * held), held // 4
end

local function start(self, key, message, repeats, delay, interval)
  local old = self.numbers[key]
  local number = timer_start(self.actor, message, repeats, delay, interval, old)
  self.numbers[key] = number -- which a finalizer may have swept meanwhile
  if number and not old then
    local held = self.held + 1
    self.held = held
    if held > self.sweep_from then sweep(self) end
  end
end

--- Tells the actor `message` once, after `delay` milliseconds; 0 is the next turn.
---
--- A timer with the same key is replaced. `key` is any value but nil and NaN.
---@param key any
---@param message any
---@param delay number
---@raise OptionsError at the caller's line
function Timers:start_single(key, message, delay)
  check_key("timers:start_single", key)
  if not is_delay(delay) then
    check.argument("timers:start_single", "delay", delay, delay_rule, 2)
  end
  start(self, key, message, ONCE, delay, 0)
end

local function start_repeating(self, where, repeats, key, message, interval, initial)
  check_key(where, key)
  check.argument(where, "interval", interval, interval_rule, 3)
  if initial == nil then initial = interval end
  check.argument(where, "initial", initial, delay_rule, 3)
  start(self, key, message, repeats, initial, interval)
end

--- Tells the actor `message` again and again, `interval` milliseconds after it handled the last.
---@param key any
---@param message any
---@param interval number
---@param initial? number  until the first; default: the interval
---@raise OptionsError at the caller's line
function Timers:start_fixed_delay(key, message, interval, initial)
  start_repeating(self, "timers:start_fixed_delay", FIXED_DELAY, key, message, interval, initial)
end

--- Tells the actor `message` every `interval` milliseconds, without drift; skips missed ticks.
---@param key any
---@param message any
---@param interval number
---@param initial? number  until the first; default: the interval
---@raise OptionsError at the caller's line
function Timers:start_fixed_rate(key, message, interval, initial)
  start_repeating(self, "timers:start_fixed_rate", FIXED_RATE, key, message, interval, initial)
end

--- Takes back a timer and its tick, even if that is queued already.  (TMR-2)
---@param key any
---@return boolean prevented
function Timers:cancel(key)
  check_key("timers:cancel", key)
  local number = self.numbers[key]
  if not number then return false end
  self.numbers[key] = nil
  local held = self.held - 1
  self.held = held
  local prevented = timer_cancel(self.actor, number)
  if held < self.sweep_below then sweep(self) end
  return prevented
end

--- Cancels them all.
function Timers:cancel_all()
  for _, number in next, self.numbers do timer_cancel(self.actor, number) end
  sweep(self)
end

--- Whether a timer with that key will tick.
---@param key any
---@return boolean
function Timers:is_active(key)
  check_key("timers:is_active", key)
  local number = self.numbers[key]
  return number ~= nil and core.timer_active(self.actor, number)
end

local timers = {}

-- The timers of an incarnation are found by its actor table and end with it.
local of_actor = setmetatable({}, { __mode = "k" })

---@param actor troupe.Actor
---@return troupe.Timers
function timers.of(actor)
  local own = of_actor[actor]
  if not own then
    own = setmetatable({ actor = actor, numbers = {}, held = 0, sweep_from = SWEEP_FROM,
      sweep_below = 0 }, Timers)
    of_actor[actor] = own
  end
  return own
end

return timers
