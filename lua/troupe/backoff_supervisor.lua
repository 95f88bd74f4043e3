--- Backoff supervisors: a child that fails is started again after a while, after a longer while
--- when it fails again.  (BOS-1)
---
---     local worker = system:spawn(troupe.backoff_supervisor {
---       child = fetch, min_backoff_ms = 100, max_backoff_ms = 10000,
---     }, "fetcher")
---     worker:tell("a page") -- handled by troupe://demo/user/fetcher/child
---
--- A failure is a restart, as elsewhere, but one whose new incarnation sleeps before it starts.
--- Meanwhile the child's mailbox keeps its mail.
local check = require "troupe.check"
local core = require "troupe.core"
local path = require "troupe.path"
local recipe = require "troupe.recipe"
local supervision = require "troupe.supervision"

---@class troupe.BackoffOptions
---@field child troupe.Behavior    a function or a table of hooks
---@field child_name? string       default "child"
---@field child_options? troupe.SpawnOptions  without a supervisor_strategy
---@field min_backoff_ms number    after the first failure; it doubles with each failure in a row
---@field max_backoff_ms number    at least `min_backoff_ms`
---@field random_factor? number    how far it may be off, from 0 to 1: 0.2 (the default) is 20 %
---  either way, but never beyond `max_backoff_ms`
---@field reset_after_ms? number   a child that lived so long begins anew; default `min_backoff_ms`
---@field stash_capacity? integer  messages that may wait while the child is away; default 1000
---@field max_restarts? integer    in a row; the next failure stops it; default -1: no limit

local schema = {
  child = check.any(),
  child_name = {
    expected = "a name that an actor may have",
    test = function(value) return path.check_name(value) == true, value end,
    default = "child",
  },
  child_options = check.table(),
  min_backoff_ms = check.duration { required = true },
  max_backoff_ms = check.duration { required = true },
  random_factor = check.number { min = 0, max = 1, default = 0.2 },
  reset_after_ms = check.duration(),
  stash_capacity = check.integer { min = 1, max = 1 << 31, default = 1000 },
  max_restarts = check.integer { min = -1, default = -1 },
}

local WHERE = "backoff_supervisor"

local function read(options, level)
  local values = check.options(WHERE, options, schema, level + 1)
  if values.max_backoff_ms < values.min_backoff_ms then
    local message = "max_backoff_ms must be at least min_backoff_ms, %.14g (got %.14g)"
    check.fail(WHERE, message:format(values.min_backoff_ms, values.max_backoff_ms), level + 1)
  end
  local child = recipe.of(WHERE, values.child, values.child_options, level + 1)
  if child.routing then
    check.fail(WHERE, "child must be no router: make the supervisor its routee", level + 1)
  end
  if child.own then
    check.fail(WHERE, "child_options must hold no supervisor_strategy: this is one", level + 1)
  end
  values.child = child
  values.reset_after_ms = values.reset_after_ms or values.min_backoff_ms
  return values
end

local function random_delay_ms(system, options, failures)
  local usual = math.min(options.min_backoff_ms * 2 ^ (failures - 1), options.max_backoff_ms)
  local least = usual * (1 - options.random_factor)
  local most = math.min(usual * (1 + options.random_factor), options.max_backoff_ms)
  return least + (most - least) * system:random()
end

-- Whether the supervisor itself stops or starts anew.
local function is_ending(actor)
  local state = actor.system:inspect(actor.ref).state
  return state == "stopping" or state == "restarting"
end

-- What the supervisor's actor knows of its child: how many `failures` there were in a row; whether
-- it is `away`, and for how long (`delay_ms`); `lives_since`, when it came back, until it fails.
local function strategy(actor, options)
  return supervision.one_for_one {
    max_restarts = -1,
    decider = function()
      if is_ending(actor) then return "stop" end
      local now = actor.system:now()
      local lived = actor.lives_since and now - actor.lives_since or 0
      if lived >= options.reset_after_ms then actor.failures = 0 end
      actor.lives_since = nil
      actor.failures = actor.failures + 1
      actor.gave_up = options.max_restarts >= 0 and actor.failures > options.max_restarts
      if actor.gave_up then return "stop" end
      actor.delay_ms = random_delay_ms(actor.system, options, actor.failures)
      actor.away = true
      return "restart"
    end,
  }
end

-- The child's behavior, but that a new incarnation sleeps first.
local function with_backoff(actor, options)
  local child = options.child
  local made = {}
  for key, value in next, child do made[key] = value end
  made.own = strategy(actor, options)

  function made.post_restart(self, reason)
    self.log:info("starts again in %.0f ms (failures in a row: %d)",
      actor.delay_ms, actor.failures)
    core.sleep(actor.delay_ms)
    if child.post_restart then
      child.post_restart(self, reason)
    elseif child.pre_start then
      child.pre_start(self)
    end
    actor.lives_since, actor.away = actor.system:now(), false
  end

  return recipe.ready(made)
end

local STOPPED = {} -- the message that says that the child has

local function child_stopped(actor)
  if actor.gave_up then actor.log:error("gave up after %d failures in a row", actor.failures) end
  actor:stop()
end

--- A behavior that has a child handle its mail, and starts it again when it fails: later and later,
--- at random within bounds.  (BOS-1)
---@param options troupe.BackoffOptions
---@return troupe.Behavior  to spawn
---@raise OptionsError at the caller's line
return function(options)
  local values = read(options, 2)
  return recipe.actor {
    drain_children = true,

    pre_start = function(actor)
      actor.failures = 0
      actor.ward = actor:spawn(with_backoff(actor, values), values.child_name)
      actor:watch_with(actor.ward, STOPPED)
    end,

    pre_restart = function(actor)
      actor:unwatch(actor.ward) -- it stops now, and the next incarnation has another
    end,

    receive = function(actor, message)
      if rawequal(message, STOPPED) then
        child_stopped(actor)
      elseif actor.away then
        actor:forward(actor.ward, values.stash_capacity)
      else
        actor:forward(actor.ward)
      end
    end,
  }
end
