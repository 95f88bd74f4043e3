--- Runs a history of a router (see router_history.lua) in a kit, and writes down what happens, for
--- the model.
local troupe = require "troupe"
local core = require "troupe.core"
local mirrors = require "spec.model.mirrors"
local testkit = require "troupe.testkit"

local Router = troupe.Router

---@class spec.RouterRun
---@field kit troupe.Kit
---@field log table[]  what has happened so far
---@field options table  of the history
---@field ids table<troupe.Ref, string>  of routees: "routee-2.3" is the third of that name
---@field refs troupe.Ref[]  of the routees so far
---@field targets troupe.Ref[]  of those at the last rest
---@field generations table<string, integer>  by name
local Run = {}
Run.__index = Run

--- Writes down what happens: when, which method of the model is to be told, and with what.
function Run:see(what, ...)
  self.log[#self.log + 1] = { at = self.kit:now(), what = what, n = select("#", ...), ... }
end

-- The id of an actor. Routees of one name come one after another.
function Run:id(ref)
  local id = self.ids[ref]
  if id then return id end
  local generation = (self.generations[ref.name] or 0) + 1
  id = ("%s.%d"):format(ref.name, generation)
  self.generations[ref.name], self.ids[ref] = generation, id
  self.refs[#self.refs + 1] = ref
  return id
end

local function name_of(path) return tostring(path):match("[^/]+$") end

-- Routees -----------------------------------------------------------------------------------------

-- What handles a message: it is closed when it neither returns nor raises.
local Code = {}

function Code:__close()
  if not self.is_over then self.run:see("closes", self.id) end
end

local deeds = {}

function deeds.nothing() end

function deeds.sleep(_, _, _, message) troupe.sleep(message.ms) end

function deeds.raise(self, code, id, message)
  code.is_over = true
  self:see("raises", id, message.directive)
  error(message.directive, 0)
end

function deeds.stop(self, _, id, _, actor)
  self:see("stops_itself", id)
  actor:stop()
end

-- Does what messages say, or nothing but answer.
function Run:routee(does_nothing)
  local behavior = {}

  function behavior.pre_start(actor) self:id(actor.ref) end

  function behavior.receive(actor, message)
    local id = self:id(actor.ref)
    local sender = not message.is_question and actor.sender
    self:see("receives", id, message.n, sender and sender.name or nil)
    local code <close> = setmetatable({ run = self, id = id }, Code)
    deeds[does_nothing and "nothing" or message.deed](self, code, id, message, actor)
    if message.is_question and not message.is_mute then
      self:see("replies", id)
      actor:reply(("%s:%d"):format(id, message.n))
    end
    code.is_over = true
    self:see("ends", id)
  end

  return behavior
end

-- The router --------------------------------------------------------------------------------------

function Run:ids_of(refs)
  local ids = {}
  for i, ref in ipairs(refs) do ids[i] = self:id(ref) end
  return ids
end

-- What a strategy may give: `picks` is what comes of it.
local gives = {
  function(routees, pick)
    local ref = routees[pick % #routees + 1]
    return ref, { ref }
  end,
  function(routees, pick) -- one of them twice
    local refs = { routees[pick % #routees + 1], routees[1], routees[pick % #routees + 1] }
    return refs, refs
  end,
  function(routees) -- an iterator of them all
    local i = 0
    return function()
      i = i + 1
      return routees[i]
    end, routees
  end,
  function(_, _, outsider) return { outsider }, { outsider } end,
  function() return {}, {} end,
  function() return nil, nil end,
  function() return { 42 }, nil end,
}

function Run:strategy()
  local mirror = mirrors.new(self.options.strategy:match("^custom (.*)"))
  return function(routees, state)
    local ids = self:ids_of(routees)
    local pick = state.message.pick
    local given, picked
    if mirror then
      given = mirror(routees, state)
      picked = given
    else
      given, picked = gives[pick % #gives + 1](routees, pick // #gives, self.outsider)
    end
    self:see("routes", state.message_index, state.message.n, ids, picked and self:ids_of(picked))
    return given
  end
end

function Run:routee_options()
  local options = self.options
  return {
    throughput = options.routee_throughput,
    mailbox = options.mailbox,
    supervisor_strategy = troupe.one_for_one {
      max_restarts = -1,
      decider = function(reason)
        return troupe.is_error(reason, "ActorKilledError") and options.kill_directive or reason
      end,
    },
  }
end

local function hash_key(message) return message.key end

-- What makes a pool: the arguments of its factory.
local pools = {}

function pools.custom(self, size, routee_options, pool_options)
  return size, self:routee(), self:strategy(), routee_options, pool_options
end

function pools.consistent_hashing(self, size, routee_options, pool_options)
  pool_options.hash_key = hash_key
  return size, self:routee(), pool_options, routee_options
end

local function pool_of(self, size, routee_options, pool_options)
  return size, self:routee(), routee_options, pool_options
end

function Run:pool(kind)
  local options = self.options
  local arguments = pools[kind] or pool_of
  return Router[kind](arguments(self, options.size, self:routee_options(),
    { on_routee_stop = options.on_routee_stop }))
end

function Run:group(kind)
  local members = {}
  for i = 1, self.options.size do
    members[i] = self.kit.system:spawn(self:routee(), "routee-" .. i, self:routee_options())
  end
  return Router.group(kind == "custom" and self:strategy() or kind, members,
    kind == "consistent_hashing" and { hash_key = hash_key } or nil)
end

function Run:spawn_router()
  local options = self.options
  local kind = options.strategy:match("^%S+")
  local behavior = options.is_group and self:group(kind) or self:pool(kind)
  self.router = self.kit.system:spawn(behavior, "pool", { throughput = options.throughput })
  self.ids[self.router] = "pool"
end

-- What is seen from outside -----------------------------------------------------------------------

local on_event = {}

function on_event.dead_letter(self, event)
  local message = event.message
  if troupe.is(message, troupe.Broadcast) then message = message.payload end
  if not message.deed then return end -- it was to be answered by the router
  local sender = not message.is_question and event.sender
  self:see("letter", name_of(event.recipient), message.n, event.reason,
    sender and sender.name or nil)
end

function on_event.message_dropped(self, event)
  self:see("dropped", name_of(event.ref.path), event.message.n, event.policy)
end

-- Of the router and its routees.
local function on_life(what, field)
  return function(self, event)
    if event.ref == self.client or event.ref == self.outsider then return end
    self:see(what, self:id(event.ref), event[field])
  end
end

on_event.actor_failed = on_life("failed", "directive")
on_event.actor_restarted = on_life("restarted")
on_event.actor_stopped = on_life("stopped")

-- What is done from outside -----------------------------------------------------------------------

local steps = {}

-- The message of a step, and how it is told.
local function mail_of(step)
  if step.is_broadcast then return troupe.Broadcast(step.message) end
  return step.message
end

function steps.tell(self, step)
  self:see("tells", step.message, step.is_broadcast, step.with_sender and "client" or nil)
  self.router:tell(mail_of(step), step.with_sender and self.client or nil)
end

-- Asks the router, under a number; what goes out is seen just before.
function Run:ask(number, message, ms, ...)
  self:see(...)
  local value, err, from = self.router:ask(message, ms)
  if type(value) == "table" then value = table.concat(self:ids_of(value), " ") end
  self:see("hears", number, value, err and err.name, err and name_of(err.path),
    value and self:id(from))
end

function steps.ask(self, step)
  local message = step.message
  message.is_question = true
  self.kit.system:go(function()
    self:ask(message.n, mail_of(step), step.ms, "asks", message, step.is_broadcast, step.ms)
  end)
end

local function request_of(change)
  if change == 0 then return troupe.GetRoutees end
  return change > 0 and troupe.AddRoutees(change) or troupe.RemoveRoutees(-change)
end

-- A request to the router itself, which is asked under the number of a message, or told.
local function to_router(self, step)
  local number = step.message and step.message.n
  if not number then
    self:see("requests", step.change)
    return self.router:tell(request_of(step.change))
  end
  self.kit.system:go(function()
    self:ask(number, request_of(step.change), 1000, "requests", step.change, number)
  end)
end

steps.add, steps.remove, steps.list = to_router, to_router, to_router

-- One of the routees that had begun by the last rest, by any number; nil when there is none.
function Run:any(number) return self.targets[(number - 1) % math.max(#self.targets, 1) + 1] end

function Run:rest()
  self:see("rest")
  self.targets = table.move(self.refs, 1, #self.refs, 1, {})
  table.sort(self.targets, function(a, b) return self.ids[a] < self.ids[b] end)
end

-- A step that is done to a routee. Nothing is seen before it is over.
local function to_routee(what, act)
  return function(self, step)
    local ref = self:any(step.target)
    if not ref then return end
    act(ref)
    self:see(what, self:id(ref))
  end
end

steps.stop = to_routee("stops", function(ref) ref:stop() end)
steps.stop_hard = to_routee("stops_hard", core.stop_now)
steps.kill = to_routee("kills", function(ref) ref:kill() end)

function steps.tell_routee(self, step)
  local ref = self:any(step.target)
  if not ref then return end
  local is_taken = ref:tell(step.message, step.with_sender and self.client or nil) ~= nil
  self:see("tells_routee", self:id(ref), step.message, step.with_sender and "client" or nil,
    is_taken)
end

function steps.pills(self)
  self:see("broadcasts_signal", "pill")
  self.router:tell(troupe.Broadcast(troupe.PoisonPill))
end

function steps.kills(self)
  self:see("broadcasts_signal", "kill")
  self.router:tell(troupe.Broadcast(troupe.Kill))
end

function steps.kill_router(self)
  self:see("kills_router")
  self.router:kill()
end

function steps.tell_router_kill(self)
  self:see("tells_router_kill")
  self.router:tell(troupe.Kill)
end

function steps.stop_router(self)
  self:see("stops_router")
  self.router:stop()
end

function steps.advance(self, step)
  self.kit:advance(step.ms)
  self:rest()
end

local function run(kit, history)
  local self = setmetatable({
    kit = kit, log = {}, options = history.options, ids = {}, refs = {}, targets = {},
    generations = {},
  }, Run)
  for kind, see in pairs(on_event) do
    kit.system.events:subscribe(function(event) see(self, event) end, kind)
  end
  self.client = kit.system:spawn(function() end, "client")
  self.outsider = kit.system:spawn(self:routee(true), "outsider")
  self.ids[self.outsider] = "outsider"
  self:spawn_router()
  for _, step in ipairs(history.steps) do
    steps[step.name](self, step)
    if step.settles then
      kit:settle()
      self:rest()
    end
  end
  kit:advance(2000)
  self:rest()
  steps.stop_router(self)
  for number = 1, history.options.is_group and #self.refs or 0 do
    steps.stop(self, { target = number })
  end
  kit:advance(2000)
  self:rest()
  kit.system:terminate()
  local stats = kit.system:stats()
  self:see("is_over", stats.queued, stats.anchored)
  return self.log
end

--- Runs a history.
---@param history table
---@return table[] log  what happened: `at`, `what`, and its arguments
return function(history)
  local kit = testkit.system("demo", { seed = history.seed, log_level = "off" })
  if not history.is_shuffled then return run(kit, history) end
  local log
  kit:explore(function(fresh) log = run(fresh, history) end, { first = history.seed, seeds = 1 })
  kit.system:terminate()
  return log
end
