--- Runs a history (see history.lua) in a kit, and writes down what happens, for the model.
local troupe = require "troupe"
local core = require "troupe.core"
local testkit = require "troupe.testkit"

-- How much the actors of one history may do: some would go on for ever.
local ACTS = 300

local KINDS = {
  "actor_started", "actor_restarted", "actor_stopped", "actor_failed", "hook_failed", "dead_letter",
}

---@class spec.Run
---@field kit troupe.Kit
---@field log table[]     what has happened so far
---@field refs troupe.Ref[]  of the actors, whose ids count up from 1
---@field ids table<troupe.Ref, integer>
---@field kept troupe.Ref[]  reply refs that actors have kept
---@field strategies table   what was made of the strategies of the history
---@field codes table        the handler or hook of each actor that runs or waits
---@field marks integer      actor tables seen so far
---@field acts_left integer
local Run = {}
Run.__index = Run

--- Writes down what happens: when, which method of the model is to be told, and with what.
function Run:see(what, ...)
  self.log[#self.log + 1] = { at = self.kit:now(), what = what, n = select("#", ...), ... }
end

-- As the model knows it --------------------------------------------------------------------------

local function cause_of(reason)
  if troupe.is_error(reason, "ActorKilledError") then
    return { killed = reason.path }
  elseif troupe.is_error(reason, "ActorInitializationError") then
    return { starts = true, value = reason.cause }
  end
  return { value = reason }
end

local function message_of(self, message)
  if not troupe.is(message, troupe.Terminated) then return message end
  return { terminated = self.ids[message.actor] }
end

local function sender_of(self, sender)
  return sender and (self.ids[sender] or "reply ref")
end

-- The outcome of a wait.
local function outcome(self, value, err, from)
  local name = troupe.is_error(err) and err.name or err
  return { value = value, error = name, from = from and self.ids[from] }
end

function Run:on_event(event)
  local seen = {
    kind = event.kind,
    directive = event.directive,
    why = event.why,
    hook = event.hook,
  }
  if event.kind == "dead_letter" then
    seen.path = event.recipient
    seen.message, seen.reason = message_of(self, event.message), event.reason
    seen.sender = sender_of(self, event.sender)
  else
    seen.path = tostring(event.ref)
    local has_cause = event.kind == "actor_failed" or event.kind == "actor_restarted"
      or event.kind == "hook_failed" and event.hook ~= "decider"
    seen.cause = has_cause and cause_of(event.reason) or nil
  end
  self:see("event", seen)
end

-- Actors ------------------------------------------------------------------------------------------

local acts = {}

-- Does what a message or a hook says.
function Run:perform(id, actor, list)
  for _, act in ipairs(list) do
    if self.acts_left == 0 then return end
    self.acts_left = self.acts_left - 1
    acts[act.name](self, id, actor, act)
  end
end

-- A handler or a hook: it is closed when it neither returns nor raises. Its guard is what it raises
-- as it is closed, however it ends.
local Code = {}

function Code:__close(err)
  if not self.is_over then self.run:see("closes", self.id, self.guard) end
  if not self.is_over and err ~= nil then self.run:see("breaks", self.id, tostring(err)) end
  if self.guard then error(self.guard.value, 0) end
end

function Run:run_code(id, actor, list, begins, ...)
  self:see(begins, id, ...)
  local code <close> = setmetatable({ run = self, id = id }, Code)
  self.codes[id] = code
  self:perform(id, actor, list)
  code.is_over = true
  if code.guard then self:see("raises", id, code.guard.value) else self:see("ends", id) end
end

-- Which table of its the code of an actor gets, and whether it is a fresh one.
function Run:mark(actor)
  local is_fresh = actor.mark == nil
  if is_fresh then
    self.marks = self.marks + 1
    actor.mark = self.marks
  end
  return { mark = actor.mark, is_fresh = is_fresh }
end

-- What handles messages, under a name.
function Run:receiver(id, name)
  return function(actor, message)
    local what = self:mark(actor)
    what.message, what.as = message_of(self, message), name
    local is_asked = type(message) == "table" and message.is_question
    if not is_asked then what.sender = sender_of(self, actor.sender) end
    self:run_code(id, actor, type(message) == "table" and message.acts or {}, "receives", what)
  end
end

function Run:behavior(id, spec)
  local hooks = { receive = self:receiver(id, "base") }
  for name, programs in pairs(spec.hooks) do
    local calls = 0
    hooks[name] = function(actor, reason, message)
      calls = calls + 1
      local what = self:mark(actor)
      local is_own = name == "pre_restart" or name == "post_restart"
      if is_own then what.cause = cause_of(reason) end
      if name == "pre_restart" then what.message = message_of(self, message) end
      self:run_code(id, actor, programs[math.min(calls, #programs)], "begins", name, what)
    end
  end
  if spec.is_plain then return hooks.receive end
  hooks.supervisor_strategy = self:strategy(spec.children_strategy)
  hooks.stop_children_on_restart = not spec.keep_children
  return hooks
end

function Run:strategy(strategy)
  if not strategy then return nil end
  local known = self.strategies[strategy]
  if not known then
    local make = strategy.all_for_one and troupe.all_for_one or troupe.one_for_one
    known = make {
      max_restarts = strategy.max_restarts,
      within_ms = strategy.within_ms,
      decider = strategy.directive or function(reason)
        local cause = cause_of(reason)
        self:see("decides", strategy, cause)
        local answer = strategy.decider(cause)
        if answer == "raise" then error("the decider raises", 0) end
        return answer
      end,
    }
    self.strategies[strategy] = known
  end
  return known
end

--- Spawns below an actor, or from outside when `actor` is the system.
function Run:spawn(parent_id, actor, spec, name)
  local id = #self.refs + 1
  local ok, ref = pcall(actor.spawn, actor, self:behavior(id, spec), name, {
    supervisor_strategy = self:strategy(spec.strategy),
    stash_capacity = spec.stash_capacity,
    throughput = spec.throughput,
  })
  if ok then self.refs[id], self.ids[ref] = ref, id end
  self:see("spawns", parent_id, id, spec, name, ok and tostring(ref))
end

-- One of the actors so far, by any number.
function Run:any(number) return (number - 1) % #self.refs + 1 end

-- What an actor does ------------------------------------------------------------------------------

function acts.raise(self, id, _, act)
  local code = self.codes[id]
  code.is_over = true
  local reason = act.value
  if code.guard then reason = code.guard.value end -- SUP-9
  self:see("raises", id, reason)
  error(act.value, 0)
end

function acts.guard(self, id, _, act) self.codes[id].guard = { value = act.value } end

function acts.spawn(self, id, actor, act)
  if #self.refs < 25 then self:spawn(id, actor, act.spec, act.child_name) end
end

function acts.tell(self, id, actor, act)
  local target = self:any(act.target)
  local sender = act.with_sender and id or nil
  self:see("tells", target, act.message, sender)
  self.refs[target]:tell(act.message, sender and actor.ref)
end

function acts.poison(self, _, _, act)
  local target = self:any(act.target)
  self:see("tells_pill", target)
  self.refs[target]:tell(troupe.PoisonPill)
end

function acts.kill_message(self, _, _, act)
  local target = self:any(act.target)
  self:see("tells_kill", target)
  self.refs[target]:tell(troupe.Kill)
end

function acts.stop(self, _, _, act)
  local target = self:any(act.target)
  self:see("stops", target)
  self.refs[target]:stop()
end

function acts.kill(self, _, _, act)
  local target = self:any(act.target)
  self:see("kills", target)
  self.refs[target]:kill()
end

function acts.stop_child(self, _, actor, act)
  local children = actor.children
  if #children == 0 then return end
  local child = children[(act.target - 1) % #children + 1]
  self:see("stops_hard", self.ids[child])
  actor:stop(child)
end

function acts.stop_itself(self, id, actor)
  self:see("stops_itself", id)
  actor:stop()
end

function acts.watch(self, id, actor, act)
  local target = self:any(act.target)
  if target == id then return end
  self:see("watches", id, target, act.message)
  if act.message then
    actor:watch_with(self.refs[target], act.message)
  else
    actor:watch(self.refs[target])
  end
end

function acts.unwatch(self, id, actor, act)
  local target = self:any(act.target)
  if target == id then return end
  self:see("unwatches", id, target)
  actor:unwatch(self.refs[target])
end

function acts.stash(self, id, actor) self:see("stashes", id, (pcall(actor.stash, actor))) end

function acts.unstash(self, id, actor)
  self:see("unstashes", id)
  actor:unstash_all()
end

function acts.become(self, id, actor, act)
  self:see("becomes", id, act.as, act.push)
  actor:become(self:receiver(id, act.as), { push = act.push })
end

function acts.unbecome(self, id, actor)
  self:see("unbecomes", id)
  actor:unbecome()
end

function acts.start_timer(self, id, actor, act)
  self:see("starts_timer", id, act.key, act.message, act.ms)
  actor.timers:start_single(act.key, act.message, act.ms)
end

function acts.cancel_timer(self, id, actor, act)
  self:see("cancels_timer", id, act.key, actor.timers:cancel(act.key))
end

function acts.look(self, id, actor)
  local sender = actor.sender
  self:see("looks", id, sender_of(self, sender))
  if sender and not self.ids[sender] then self.kept[#self.kept + 1] = sender end
end

function acts.answer(self, id, actor, act)
  if #self.kept == 0 then return end
  local number = (act.target - 1) % #self.kept + 1
  self:see("answers", id, number, act.message)
  self.kept[number]:tell(act.message, actor.ref)
end

function acts.reply(self, id, actor, act)
  local answers = act.fails and actor.fail or actor.reply
  self:see("replies", id, act.fails and "error" or "value", act.message,
    answers(actor, act.message))
end

function acts.look_at_children(self, id, actor)
  local ids = {}
  for i, ref in ipairs(actor.children) do ids[i] = self.ids[ref] end
  self:see("counts_children", id, ids)
end

function acts.sleep(self, id, _, act)
  self:see("sleeps", id, act.ms)
  self:see("goes_on", id, outcome(self, troupe.sleep(act.ms)))
end

function acts.ask(self, id, _, act)
  local target = self:any(act.target)
  self:see("asks", id, target, act.message, act.ms)
  self:see("goes_on", id, outcome(self, self.refs[target]:ask(act.message, act.ms)))
end

function acts.await_stop(self, id, _, act)
  local target = self:any(act.target)
  self:see("awaits_stop", id, target, act.ms)
  self:see("goes_on", id, outcome(self, self.refs[target]:await_stop(act.ms)))
end

-- What is done from outside -----------------------------------------------------------------------

local steps = {}

function steps.spawn(self, step) self:spawn(0, self.kit.system, step.spec, step.child_name) end

function steps.ask(self, step)
  local target = self:any(step.target)
  local task = "task " .. step.message.id
  pcall(self.kit.system.go, self.kit.system, function() -- refused by one that terminates
    self:see("task_asks", task, target, step.message, step.ms)
    self:see("task_goes_on", task, outcome(self, self.refs[target]:ask(step.message, step.ms)))
  end)
end

function steps.stop_hard(self, step)
  local target = self:any(step.target)
  self:see("stops_hard", target)
  core.stop_now(self.refs[target])
end

function steps.graceful_stop(self, step)
  local target = self:any(step.target)
  self:see("stops", target)
  local in_time = troupe.graceful_stop(self.refs[target], step.ms)
  self:see("has_stopped", target, in_time)
  if not in_time then self:see("stops_hard", target) end
end

function steps.advance(self, step) self.kit:advance(step.ms) end

for _, name in ipairs { "tell", "poison", "kill_message", "stop", "kill" } do
  steps[name] = function(self, step) acts[name](self, 0, nil, step) end
end

function Run:rest()
  local stats = self.kit.system:stats()
  self:see("rest", stats.actors, stats.parked)
end

-- How many records there are of each level.
local function count_records(records)
  local counts = { info = 0, warn = 0, error = 0 }
  for _, record in ipairs(records) do counts[record.level] = counts[record.level] + 1 end
  return counts
end

local function run(kit, history)
  local self = setmetatable({
    kit = kit, log = {}, refs = {}, ids = {}, kept = {}, strategies = {}, codes = {}, marks = 0,
    acts_left = ACTS,
  }, Run)
  local function on_event(event) self:on_event(event) end
  for _, kind in ipairs(KINDS) do kit.system.events:subscribe(on_event, kind) end
  for _, step in ipairs(history.steps) do
    steps[step.name](self, step)
    if step.settles then
      kit:settle()
      self:rest()
    end
  end
  kit:settle()
  self:rest()
  self:see("terminates", history.options.drain_timeout_ms)
  kit.system:terminate()
  local stats = kit.system:stats()
  if stats.anchored > 0 then -- perhaps by answers to nobody, for the sake of their reply refs
    self.kept = {}
    collectgarbage()
    stats = kit.system:stats()
  end
  self:see("is_over", stats, count_records(kit.logs))
  return self.log, kit.logs
end

--- Runs a history.
---@param history table
---@return table[] log      what happened: `at`, `what`, and its arguments
---@return table[] records  of the log of its system
return function(history)
  local kit = testkit.system("demo", history.options)
  if not history.is_shuffled then return run(kit, history) end
  local log, records
  kit:explore(function(fresh) log, records = run(fresh, history) end,
    { first = history.seed, seeds = 1 })
  return log, records
end
