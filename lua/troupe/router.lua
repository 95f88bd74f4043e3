--- Router factories.  (RTR-1)
---
--- Each gives a behavior to spawn: an actor that owns `size` routees, "routee-1" and so on, and
--- passes its mail on to them. The sender is kept: replies go straight to whoever asked (RTR-4).
--- Those that gather are in gathering.lua.
local check = require "troupe.check"
local gathering = require "troupe.gathering"
local group = require "troupe.group"
local pool = require "troupe.pool"
local recipe = require "troupe.recipe"

local Router = {}

---@class troupe.RouterBehavior  a router to be spawned, many times too; its text is the factory
---  and the size: "Router.round_robin(3)" (RTR-1)

---@class troupe.HashingOptions : troupe.PoolOptions  (RTR-16)
---@field hash_key troupe.HashKey  what gives the key of a message; it may not wait

---@alias troupe.HashKey fun(message: any): string | number | boolean

---@class troupe.RoutingState  (RTR-10)
---@field message_index integer  of the message, from 0
---@field message any
---@field depth fun(self: troupe.RoutingState, routee: troupe.Ref): number  messages that wait
---  there, and one for the one in hand; `math.huge` when it takes no more mail; raises OptionsError

---@alias troupe.Picked troupe.Ref | troupe.Ref[] | fun(): troupe.Ref?
---@alias troupe.Strategy fun(routees: troupe.Ref[], state: troupe.RoutingState): troupe.Picked

local strategy_rule = check.func()

local key_rule = check.func { required = true }

local hashing_schema = pool.options { hash_key = key_rule }

--- Every routee in turn.  (RTR-6)
---@param size integer            routees, at least 1
---@param routee troupe.Behavior  what each of them does
---@param routee_options? troupe.SpawnOptions  given to each routee
---@param pool_options? troupe.PoolOptions
---@return troupe.RouterBehavior
---@raise OptionsError at the caller's line
function Router.round_robin(size, routee, routee_options, pool_options)
  local made = pool.make("Router.round_robin", "round_robin", size, routee, routee_options,
    pool.plain, pool_options)
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
  local made = pool.make("Router.random", "random", size, routee, routee_options, pool.plain,
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
  local made = pool.make("Router.broadcast", "broadcast", size, routee, routee_options, pool.plain,
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
  local made = pool.make("Router.smallest_mailbox", "smallest_mailbox", size, routee,
    routee_options, pool.plain, pool_options)
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
  local made = pool.make("Router.custom", "custom", size, routee, routee_options, pool.plain,
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
  local made = pool.make("Router.consistent_hashing", "consistent_hashing", size, routee,
    routee_options, hashing_schema, options)
  made.strategy = made.hash_key
  return made
end

Router.scatter_gather_first_completed = gathering.scatter_gather_first_completed
Router.hedged = gathering.hedged
Router.tail_chopping = gathering.tail_chopping
Router.scatter_gather = gathering.scatter_gather

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
  if gathering[strategy] ~= nil then
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
