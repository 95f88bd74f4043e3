--- Random histories: a forest of actors, and what is done to it from outside, step by step. A
--- message is a small program that its receiver carries out; so is a hook. Actors are told by
--- numbers, which mean those that exist when the time comes.
---
--- The same seed gives the same history.

local chance = require "spec.model.chance"

---@class spec.Maker : spec.Chance  makes one history
---@field messages integer  so far
---@field mood table      what this history has more of, or less
local Maker = setmetatable({}, { __index = chance })
Maker.__index = Maker

function Maker:target() return self.random(30) end

-- Strategies --------------------------------------------------------------------------------------

local function reason(name)
  return setmetatable({}, { __tostring = function() return name end })
end

-- What is raised; nil, too.
local REASONS = { "tin", "lead", reason("brass"), reason("zinc"), nil }

function Maker:reason() return REASONS[self.random(5)] end

local answers = {
  { "resume", 4 }, { "restart", 6 }, { "stop", 3 }, { "escalate", 4 }, { "raise", 1 }, { "?", 1 },
}

function Maker:directive()
  return self:weighted {
    { "resume", 3 }, { "restart", self.mood.restarts }, { "stop", 2 },
    { "escalate", self.mood.escalates },
  }
end

function Maker:decider()
  local by_reason, for_starts, for_kills = {}, self:weighted(answers), self:weighted(answers)
  for i = 1, 5 do by_reason[REASONS[i] or "none"] = self:weighted(answers) end
  return function(cause)
    return cause.starts and for_starts or cause.killed and for_kills
      or by_reason[cause.value or "none"]
  end
end

function Maker:strategy()
  local decides = self:chance(30)
  return {
    all_for_one = self:chance(self.mood.all_for_one),
    decider = decides and self:decider() or nil,
    directive = not decides and self:directive() or nil,
    max_restarts = self:one_of { -1, -1, 0, 1, 2, 3, 10 },
    within_ms = self:one_of { 5, 20, 60000 },
  }
end

-- Acts --------------------------------------------------------------------------------------------

local Message = { __tostring = function(self) return "#" .. self.id end }

--- A message that makes its receiver do something.
function Maker:new_message(acts)
  self.messages = self.messages + 1
  return setmetatable({ id = self.messages, acts = acts }, Message)
end

local in_programs = {
  { "tell", 10 }, { "raise", 8 }, { "guard", 3 }, { "spawn", 6 }, { "stop_itself", 2 },
  { "stop_child", 4 }, { "stop", 3 }, { "poison", 1 }, { "kill", 3 }, { "kill_message", 2 },
  { "watch", 5 }, { "unwatch", 2 }, { "stash", 5 }, { "unstash", 4 }, { "become", 3 },
  { "unbecome", 2 }, { "sleep", 5 }, { "ask", 5 }, { "await_stop", 2 }, { "reply", 5 },
  { "look", 4 }, { "answer", 4 }, { "start_timer", 3 }, { "cancel_timer", 1 },
  { "look_at_children", 2 },
}

-- The fields of an act but its name; `depth` says how deep programs may still stand in programs.
local make = {}

function make.raise(self) return { value = self:reason() } end

make.guard = make.raise

function make.spawn(self, depth)
  local name = self:chance(40) and self:one_of { "a", "b" } or nil
  return { spec = self:spec(depth - 1), child_name = name }
end

function make.tell(self, depth)
  local is_sender = self:chance(60)
  return { target = self:target(), with_sender = is_sender, message = self:message(depth - 1) }
end

function make.ask(self, depth)
  local message = self:message(depth - 1)
  message.is_question = true
  return { target = self:target(), message = message, ms = self:one_of { 3, 7, 20 } }
end

function make.watch(self)
  local message = self:chance(30) and self:new_message({}) or nil
  return { target = self:target(), message = message }
end

function make.await_stop(self) return { target = self:target(), ms = self:one_of { 4, 15 } } end

make.graceful_stop = make.await_stop

function make.sleep(self) return { ms = self.random(10) } end

function make.advance(self) return { ms = self:one_of { 5, 20, self.random(15) } } end

function make.become(self) return { as = self:one_of { "x", "y" }, push = self:chance(50) } end

function make.start_timer(self, depth)
  return { key = self:one_of { "k", "l" }, ms = self.random(12), message = self:message(depth - 1) }
end

function make.cancel_timer(self) return { key = self:one_of { "k", "l" } } end

function make.reply(self)
  return { message = self:new_message({}), fails = self:chance(20) }
end

function make.answer(self) return { target = self:target(), message = self:new_message({}) } end

local function make_target(self) return { target = self:target() } end

for _, name in ipairs { "stop", "stop_child", "stop_hard", "poison", "kill", "kill_message",
  "unwatch" } do
  make[name] = make_target
end

function Maker:act(name, depth)
  local act = make[name] and make[name](self, depth) or {}
  act.name = name
  return act
end

function Maker:program(most, depth)
  local acts = {}
  if depth <= 0 then return acts end
  for i = 1, self.random(most + 1) - 1 do
    acts[i] = self:act(self:weighted(in_programs), depth)
    if acts[i].name == "raise" then break end
  end
  return acts
end

function Maker:message(depth) return self:new_message(self:program(4, depth)) end

-- Actors ------------------------------------------------------------------------------------------

--- What a hook does when it is called for the first time, the second, ...; the last is for the
--- rest.
function Maker:hook(depth)
  local programs = {}
  for i = 1, self.random(2) do
    programs[i] = self:chance(50) and self:program(3, depth) or {}
    if self:chance(self.mood.hooks_wait) then
      table.insert(programs[i], 1, self:act("sleep", depth))
    end
  end
  programs[#programs + 1] = {}
  return programs
end

--- Puts children in front of what pre_start does at first.
function Maker:families(programs, depth)
  if depth <= 0 or not self:chance(self.mood.families) then return end
  for _ = 1, self.random(2) do table.insert(programs[1], 1, self:act("spawn", depth)) end
end

function Maker:spec(depth)
  local spec = { hooks = {}, stash_capacity = self:chance(10) and 1 or 1024 }
  if self:chance(self.mood.own_strategies) then spec.strategy = self:strategy() end
  if self:chance(20) then spec.throughput = self.random(3) end
  spec.is_plain = self:chance(15)
  if spec.is_plain then return spec end
  local hooks = spec.hooks
  if self:chance(80) then
    hooks.pre_start = self:hook(depth)
    self:families(hooks.pre_start, depth)
  end
  if self:chance(80) then hooks.post_stop = self:hook(depth) end
  if self:chance(40) then hooks.pre_restart = self:hook(depth) end
  if self:chance(40) then hooks.post_restart = self:hook(depth) end
  if self:chance(60) then spec.children_strategy = self:strategy() end
  spec.keep_children = self:chance(self.mood.keep_children)
  return spec
end

-- Steps -------------------------------------------------------------------------------------------

local from_outside = {
  { "tell", 30 }, { "ask", 6 }, { "kill", 4 }, { "kill_message", 2 }, { "stop", 3 },
  { "poison", 1 }, { "stop_hard", 2 }, { "graceful_stop", 1 }, { "spawn", 4 }, { "advance", 10 },
  { "fail", 10 },
}

local DEPTH = 4

function Maker:step(name)
  if name == "fail" then
    local message = self:new_message { self:act("raise") }
    return { name = "tell", target = self:target(), message = message }
  end
  local step = make[name](self, DEPTH)
  step.name, step.with_sender = name, nil
  return step
end

--- The history of a seed.
---@param seed integer
---@return table history  `seed`, `options` of its system, `is_shuffled`, `steps`
return function(seed)
  local self = setmetatable({ random = chance.random(seed), messages = 0 }, Maker)
  self.mood = {
    restarts = self:one_of { 2, 6 },
    escalates = self:one_of { 1, 4, 12 },
    all_for_one = self:one_of { 0, 20, 80 },
    own_strategies = self:one_of { 10, 60 },
    keep_children = self:one_of { 0, 30, 90 },
    hooks_wait = self:one_of { 0, 10, 60 },
    families = self:one_of { 0, 40, 90 },
  }
  local history = {
    seed = seed,
    is_shuffled = self:chance(50),
    options = {
      seed = seed,
      log_level = "warn",
      throughput = self:one_of { 1, 2, 32 },
      drain_timeout_ms = self:one_of { 0, 5, 2000 },
      escalate_to_root = self:chance(10) and "terminate" or nil,
    },
    steps = {},
  }
  for i = 1, self.random(3) do history.steps[i] = self:step("spawn") end
  for _ = 1, self.random(12) do
    local step = self:step(self:weighted(from_outside))
    step.settles = self:chance(70)
    history.steps[#history.steps + 1] = step
  end
  return history
end
