--- Router factories.  (RTR-1)
---
--- Each gives a behavior to spawn: an actor that owns `size` routees, "routee-1" and so on, and
--- passes its mail on to them. The sender is kept: replies go straight to whoever asked (RTR-4).
local check = require "troupe.check"
local group = require "troupe.group"
local recipe = require "troupe.recipe"

local Router = {}

---@class troupe.RouterBehavior

---@class troupe.PoolOptions
---@field on_routee_stop? "remove" | "keep" | "respawn"  default "remove": a routee that stopped
---  leaves the pool; "keep" dead-letters its share; "respawn" spawns it anew, at most 10 times a
---  minute
---@field resizer? troupe.ResizerOptions  default: none, the size stays

---@class troupe.ResizerOptions  when a pool grows and shrinks, and by how much (RTR-18)
---@field lower_bound? integer  routees that it has at least; default 1
---@field upper_bound? integer  and at most; default 10
---@field pressure_threshold? integer  when a routee is under pressure: 0, while it is busy; 1,
---  while it is busy and mail waits; n, while n messages or more wait; default 1
---@field rampup_rate? number  grows by this share when all routees are under pressure; default 0.2
---@field backoff_threshold? number  shrinks when less than this share is; default 0.3
---@field backoff_rate? number  by this share; default 0.1
---@field messages_per_resize? integer  it is looked at each time so many have come; default 10

---@class troupe.ScatterOptions : troupe.PoolOptions
---@field timeout_ms? number  of a whole scatter; default 4500, below the 5000 of `ask`
---@field cancel_losers? boolean  a request that is not wanted any more is withdrawn, or its
---  handler's wait ends (SG-14); default false: losers run on

---@class troupe.HedgedOptions : troupe.ScatterOptions  `delay_ms` or `percentile`
---@field delay_ms? number    how long an answer may take before the next routee is asked
---@field percentile? number  the same, as a share of the router's own latencies: between 0 and 1;
---  default 0.95; until 20 answers are known, only failures make it ask the next
---@field max_extra_load? number  the share of requests that may be hedges; in a burst ten, or that
---  share of the requests of the last ten seconds; default 0.1; 0: none, only failures make it ask
---  the next

---@class troupe.TailChoppingOptions : troupe.ScatterOptions
---@field interval_ms? number  between two that are asked; default 10

---@class troupe.GatherOptions : troupe.ScatterOptions
---@field wait_for? integer | "majority" | "all"  replies that are needed; default "all"

---@class troupe.Reply
---@field routee troupe.Ref  who gave it
---@field value any

---@class troupe.HashingOptions : troupe.PoolOptions
---@field hash_key troupe.HashKey  what gives the key of a message; it may not wait

---@alias troupe.HashKey fun(message: any): string | number | boolean

---@class troupe.RoutingState
---@field message_index integer  of the message, from 0
---@field message any
---@field depth fun(self: troupe.RoutingState, routee: troupe.Ref): number  messages that wait
---  there, and one for the one in hand; `math.huge` when it takes no more mail; raises OptionsError

---@alias troupe.Picked troupe.Ref | troupe.Ref[] | fun(): troupe.Ref?
---@alias troupe.Strategy fun(routees: troupe.Ref[], state: troupe.RoutingState): troupe.Picked

local MAX_SIZE = 1000000

local MAX_DEPTH = 100 -- of routers as routees of routers

local size_rule = check.integer { min = 1 }

local strategy_rule = check.func()

local pool_schema = {
  on_routee_stop = check.one_of { "remove", "keep", "respawn", default = "remove" },
  resizer = check.record {
    lower_bound = check.integer { min = 1, max = MAX_SIZE, default = 1 },
    upper_bound = check.integer { min = 1, max = MAX_SIZE, default = 10 },
    pressure_threshold = check.integer { min = 0, max = 1 << 31, default = 1 },
    rampup_rate = check.number { min = 0, default = 0.2 },
    backoff_threshold = check.number { min = 0, max = 1, default = 0.3 },
    backoff_rate = check.number { min = 0, max = 1, default = 0.1 },
    messages_per_resize = check.integer { min = 1, max = 1 << 31, default = 10 },
  },
}

-- The options of a pool, of a scatter, and `more`.
local function scatter_options(more)
  local schema = {
    timeout_ms = check.duration { default = 4500 },
    cancel_losers = check.boolean { default = false },
  }
  for name, rule in next, pool_schema do schema[name] = rule end
  for name, rule in next, more do schema[name] = rule end
  return schema
end

local scatter_schema = scatter_options {}

local percentile_rule = {
  expected = "a number between 0 and 1, both excluded",
  test = function(value) return type(value) == "number" and value > 0 and value < 1, value end,
}

local hedged_schema = scatter_options {
  delay_ms = check.duration(),
  percentile = percentile_rule,
  max_extra_load = check.number { min = 0, default = 0.1 },
}

local tail_chopping_schema = scatter_options { interval_ms = check.duration { default = 10 } }

local positive_integer = check.integer { min = 1 }

local gather_schema = scatter_options {
  wait_for = {
    expected = 'an integer of at least 1, "majority" or "all"',
    default = "all",
    test = function(value)
      if value == "majority" or value == "all" then return true, value end
      return positive_integer.test(value)
    end,
  },
}

local function check_bounds(where, resizer, level)
  if not resizer or resizer.upper_bound >= resizer.lower_bound then return end
  local message = "resizer.upper_bound must be at least resizer.lower_bound, %d (got %d)"
  check.fail(where, message:format(resizer.lower_bound, resizer.upper_bound), level + 1)
end

local key_rule = check.func { required = true }

local hashing_schema = { hash_key = key_rule }
for name, rule in next, pool_schema do hashing_schema[name] = rule end

-- The factory `where` was called by the user: its errors name that line, three levels up.
local function pool(where, routing, size, routee, routee_options, schema, options)
  local values = check.options(where, options, schema, 3)
  check_bounds(where, values.resizer, 3)
  values.size = check.argument(where, "size", size, size_rule, 3)
  if values.size > MAX_SIZE then
    check.fail(where, ("size must be at most %d (got %d)"):format(MAX_SIZE, values.size), 3)
  end
  values.routee = recipe.of(where, routee, routee_options, 3)
  values.depth = (values.routee.depth or 0) + 1
  if values.depth > MAX_DEPTH then
    check.fail(where, ("routers must not be nested more than %d deep"):format(MAX_DEPTH), 3)
  end
  values.routing = routing
  values.shown = ("%s(%d)"):format(where, values.size)
  return recipe.ready(values)
end

--- Every routee in turn.  (RTR-6)
---@param size integer            routees, at least 1
---@param routee troupe.Behavior  what each of them does
---@param routee_options? troupe.SpawnOptions  given to each routee
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.round_robin(size, routee, routee_options, pool_options)
  local made = pool("Router.round_robin", "round_robin", size, routee, routee_options, pool_schema,
    pool_options)
  return made
end

--- Any one routee, evenly; seeded by the system's seed.  (RTR-7)
---@param size integer
---@param routee troupe.Behavior
---@param routee_options? troupe.SpawnOptions
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.random(size, routee, routee_options, pool_options)
  local made = pool("Router.random", "random", size, routee, routee_options, pool_schema,
    pool_options)
  return made
end

--- All of them: a sender gets as many replies as there are routees, an ask the first.  (RTR-8)
---@param size integer
---@param routee troupe.Behavior
---@param routee_options? troupe.SpawnOptions
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.broadcast(size, routee, routee_options, pool_options)
  local made = pool("Router.broadcast", "broadcast", size, routee, routee_options, pool_schema,
    pool_options)
  return made
end

--- The routee with the shortest queue, a message in hand counted; ties rotate.  (RTR-9)
---
--- Costs a look at every routee for each message: for work of very uneven size.
---@param size integer
---@param routee troupe.Behavior
---@param routee_options? troupe.SpawnOptions
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.smallest_mailbox(size, routee, routee_options, pool_options)
  local made = pool("Router.smallest_mailbox", "smallest_mailbox", size, routee, routee_options,
    pool_schema, pool_options)
  return made
end

--- Whom your function picks.  (RTR-10, RTR-11)
---
--- `strategy(routees, state)` gets a fresh list of refs and gives a ref, or a list or an iterator
--- of them; an empty one drops the message. It may not wait. One that raises, never ends, or gives
--- something else, costs that one message, which is dead-lettered.
---@param size integer
---@param routee troupe.Behavior
---@param strategy troupe.Strategy
---@param routee_options? troupe.SpawnOptions
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.custom(size, routee, strategy, routee_options, pool_options)
  check.argument("Router.custom", "strategy", strategy, strategy_rule, 2)
  local made = pool("Router.custom", "custom", size, routee, routee_options, pool_schema,
    pool_options)
  made.strategy = strategy
  return made
end

--- The same routee for the same key, as far as the pool stays the same.  (RTR-16)
---
--- `hash_key(message)` gives the key: a string, a number or a boolean. A routee that leaves gives
--- its keys to all others evenly, one that is new takes some from each; no other key moves. One
--- that restarts or is respawned has the keys it had. A function that raises, or gives something
--- else, costs that one message (RTR-11).
---@param size integer
---@param routee troupe.Behavior
---@param options troupe.HashingOptions
---@param routee_options? troupe.SpawnOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.consistent_hashing(size, routee, options, routee_options)
  local made = pool("Router.consistent_hashing", "consistent_hashing", size, routee, routee_options,
    hashing_schema, options)
  made.strategy = made.hash_key
  return made
end

--- Asks every routee and answers with the first success.  (SG-1 .. SG-14)
---
--- A routee that replies with an error is out at once, and the others go on; when all fail, or none
--- has answered in time, the ask fails with an AggregateError whose `errors` are in the order of
--- the routees. Losers run on, unless they are cancelled: what you ask must do no harm when it is
--- done several times.
---@param size integer
---@param routee troupe.Behavior
---@param options? troupe.ScatterOptions
---@param routee_options? troupe.SpawnOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.scatter_gather_first_completed(size, routee, options, routee_options)
  local made = pool("Router.scatter_gather_first_completed", "first_completed", size, routee,
    routee_options, scatter_schema, options)
  return made
end

--- Asks one routee, in turn, and the next only when its answer is late or a failure; answers with
--- the first success.  (SG-15)
---
--- Late is what takes longer than `delay_ms`, or than a percentile of what this router's answers
--- have taken lately. A failure makes it ask the next at once.
---@param size integer
---@param routee troupe.Behavior
---@param options? troupe.HedgedOptions
---@param routee_options? troupe.SpawnOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.hedged(size, routee, options, routee_options)
  local made = pool("Router.hedged", "hedged", size, routee, routee_options, hedged_schema, options)
  if made.delay_ms and made.percentile then
    check.fail("Router.hedged", "delay_ms and percentile exclude each other", 2)
  end
  if not made.delay_ms then made.percentile = made.percentile or 0.95 end
  made.order = "in_turn"
  return made
end

--- Asks the routees in random order, one more each interval, until one succeeds.  (SG-16)
---
--- A failure makes it ask the next at once.
---@param size integer
---@param routee troupe.Behavior
---@param options? troupe.TailChoppingOptions
---@param routee_options? troupe.SpawnOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.tail_chopping(size, routee, options, routee_options)
  local made = pool("Router.tail_chopping", "tail_chopping", size, routee, routee_options,
    tail_chopping_schema, options)
  made.delay_ms, made.interval_ms = made.interval_ms, nil
  made.order = "at_random"
  return made
end

--- Asks every routee and answers with a list of replies, once there are as many as needed.  (SG-17)
---
--- The list holds `{ routee = ref, value = v }` for each reply, in the order in which the routees
--- were asked. When there are too few, the ask fails with an AggregateError.
---@param size integer
---@param routee troupe.Behavior
---@param options? troupe.GatherOptions
---@param routee_options? troupe.SpawnOptions
---@return troupe.RouterBehavior  answers with troupe.Reply[]
---@raise OptionsError at the caller's line
function Router.scatter_gather(size, routee, options, routee_options)
  local made = pool("Router.scatter_gather", "scatter_gather", size, routee, routee_options,
    gather_schema, options)
  if math.type(made.wait_for) and made.wait_for > made.size then
    check.fail("Router.scatter_gather", ("wait_for must be at most the size, %d (got %d)"):format(
      made.size, made.wait_for), 2)
  end
  made.list = true
  return made
end

---@alias troupe.GroupStrategy "round_robin" | "random" | "broadcast" | "smallest_mailbox"
---  | "consistent_hashing"

-- The strategies of groups.
local strategies = {
  round_robin = "round_robin",
  random = "random",
  broadcast = "broadcast",
  smallest_mailbox = "smallest_mailbox",
  consistent_hashing = "consistent_hashing",
}

local gathering = {
  scatter_gather_first_completed = true,
  scatter_gather = true,
  hedged = true,
  tail_chopping = true,
}

local group_strategy_rule = {
  expected = 'one of "round_robin", "random", "broadcast", "smallest_mailbox", '
    .. '"consistent_hashing", or a function',
  test = function(value)
    return strategies[value] ~= nil or strategy_rule.test(value), value
  end,
}

local group_schema = {}

local hashing_group_schema = { hash_key = key_rule }

--- Routes to actors that exist, instead of spawning its own.  (RTR-17)
---
--- A member that has stopped gets no more mail; a path gets mail whenever an actor is there.
--- Stopping or restarting the group leaves its members alone.
---@param strategy troupe.GroupStrategy | troupe.Strategy
---@param routees troupe.Member[]  refs and paths, of one system; a member that is there twice gets
---  twice its share
---@param options? { hash_key: troupe.HashKey }  of "consistent_hashing", which needs it; else none
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.group(strategy, routees, options)
  if gathering[strategy] then
    local message = "%s works with a pool alone: a router that gathers owns its routees"
    check.fail("Router.group", message:format(strategy), 2)
  end
  check.argument("Router.group", "strategy", strategy, group_strategy_rule, 2)
  local schema = strategy == "consistent_hashing" and hashing_group_schema or group_schema
  local values = check.options("Router.group", options, schema, 2)
  values.members, values.system_name = group.read("Router.group", routees, 2)
  values.size = #values.members
  values.routing = strategies[strategy] or "custom"
  values.strategy = values.hash_key or not strategies[strategy] and strategy or nil
  values.shown = ("Router.group(%s, %d)"):format(values.routing, values.size)
  local made = recipe.ready(values)
  return made
end

return Router
