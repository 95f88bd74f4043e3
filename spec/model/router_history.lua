--- Random histories of a router: what is told to it and done to its routees, step by step. A
--- routee does with a message what that says. Routees are told by numbers, which mean those that
--- exist when the time comes.
---
--- The same seed gives the same history.
local chance = require "spec.model.chance"

---@class spec.RouterMaker : spec.Chance  makes one history
---@field messages integer  so far
---@field mood table        what this history has more of, or less
local Maker = setmetatable({}, { __index = chance })
Maker.__index = Maker

local STRATEGIES = {
  "round_robin", "random", "broadcast", "smallest_mailbox", "consistent_hashing", "custom",
  "custom round_robin", "custom broadcast", "custom smallest_mailbox", "custom consistent_hashing",
}

-- Messages ----------------------------------------------------------------------------------------

local Message = { __tostring = function(self) return "#" .. self.n end }

-- What is hashed; none, as a rule, costs the message.
function Maker:key()
  local number = self.random(12)
  return self:weighted { { number, 5 }, { ("%d"):format(number), 4 }, { false, 1 } } or nil
end

-- What a routee does with a message: nothing, or it takes its time, raises the name of a directive,
-- or stops. One that is asked answers in the end, as a rule.
function Maker:message()
  self.messages = self.messages + 1
  return setmetatable({
    n = self.messages,
    deed = self:weighted {
      { "nothing", 10 }, { "sleep", self.mood.sleeps }, { "raise", self.mood.fails },
      { "stop", self.mood.stops },
    },
    ms = self.random(20),
    directive = self:weighted {
      { "restart", 6 }, { "resume", 4 }, { "stop", self.mood.stops }, { "escalate", 1 },
    },
    is_mute = self:chance(15),
    pick = self.random(1000), -- whom a strategy of one's own picks
    key = self:key(),
  }, Message)
end

-- Steps -------------------------------------------------------------------------------------------

local make = {}

function make.tell(self) return { message = self:message(), with_sender = self:chance(40) } end

function make.ask(self) return { message = self:message(), ms = self:one_of { 5, 15, 1000 } } end

function make.tell_routee(self)
  return { target = self.random(30), message = self:message(), with_sender = self:chance(40) }
end

function make.advance(self) return { ms = self:one_of { 5, 20, self.random(15) } } end

-- What asks a pool something, or resizes it.
local function request(change)
  return function(self)
    local is_asked = self:chance(60)
    return { change = change(self), message = is_asked and self:message() or nil }
  end
end

make.add = request(function(self) return self.random(3) end)
make.remove = request(function(self) return -self.random(self:one_of { 2, 2, 4, 12 }) end)
make.list = request(function() return 0 end)

for _, name in ipairs { "stop", "stop_hard", "kill" } do
  make[name] = function(self) return { target = self.random(30) } end
end

function Maker:step(name)
  local step = make[name] and make[name](self) or {}
  step.name = name
  step.is_broadcast = (name == "tell" or name == "ask") and self:chance(self.mood.broadcasts)
  return step
end

-- The system, the router, its routees -------------------------------------------------------------

function Maker:mailbox()
  if not self:chance(25) then return nil end
  return { capacity = self.random(3), overflow = self:one_of { "drop-head", "drop-new", "reject" } }
end

--- The history of a seed.
---@param seed integer
---@param strategy? string  of the router; one that the seed draws by default
---@return table history  `seed`, `options`, `is_shuffled`, `steps`
return function(seed, strategy)
  local self = setmetatable({ random = chance.random(seed), messages = 0 }, Maker)
  self.mood = {
    broadcasts = self:one_of { 0, 10, 40 },
    fails = self:one_of { 0, 2, 6 },
    sleeps = self:one_of { 2, 10 },
    stops = self:one_of { 0, 2, 6 },
    settles = self:one_of { 20, 50, 90 },
  }
  local drawn = self:one_of(STRATEGIES)
  local is_group = self:chance(20)
  local death, resizes = self:one_of { 0, 1, 4 }, self:one_of { 0, 1, 5 }
  -- A strategy of one's own cannot know whether a routee is away, or has come back, or is new.
  local is_mirror = (strategy or drawn):find("^custom ") ~= nil
  local from_outside = {
    { "tell", 40 }, { "ask", 15 }, { "tell_routee", 8 }, { "advance", 10 },
    { "stop", 2 * death }, { "stop_hard", death }, { "kill", 2 * death },
    { "pills", death > 1 and 1 or 0 }, { "kills", death },
    { "kill_router", death }, { "tell_router_kill", death }, { "stop_router", self.random(2) - 1 },
    { "add", (is_mirror or is_group) and 0 or resizes }, { "remove", is_group and 0 or resizes },
    { "list", resizes },
  }
  local history = {
    seed = seed,
    is_shuffled = self:chance(50),
    options = {
      strategy = strategy or drawn,
      is_group = is_group,
      size = self.random(9),
      on_routee_stop = self:one_of { "remove", "keep", "respawn" },
      throughput = self:one_of { 1, 2, 32 },
      routee_throughput = self:one_of { 1, 32 },
      mailbox = self:mailbox(),
      kill_directive = self:one_of { "restart", "resume", "stop", "escalate" },
    },
    steps = {},
  }
  if is_group or is_mirror and history.options.on_routee_stop == "respawn" then
    history.options.on_routee_stop = "remove"
  end
  for i = 1, 5 + self.random(40) do
    history.steps[i] = self:step(self:weighted(from_outside))
    history.steps[i].settles = self:chance(self.mood.settles)
  end
  return history
end
