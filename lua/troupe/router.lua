--- Router factories.  (RTR-1)
---
--- Each gives a behavior to spawn: an actor that owns `size` routees, "routee-1" and so on, and
--- passes its mail on to them. The sender is kept: replies go straight to whoever asked (RTR-4).
local check = require "troupe.check"
local recipe = require "troupe.recipe"

local Router = {}

---@class troupe.RouterBehavior

---@class troupe.PoolOptions
---@field on_routee_stop? "remove" | "keep" | "respawn"  default "remove": a routee that stopped
---  leaves the pool; "keep" dead-letters its share; "respawn" spawns it anew, at most 10 times a
---  minute

---@class troupe.ScatterOptions : troupe.PoolOptions
---@field timeout_ms? number  of a whole scatter; default 4500, below the 5000 of `ask`

---@class troupe.RoutingState
---@field message_index integer  of the message, from 0
---@field message any

---@alias troupe.Picked troupe.Ref | troupe.Ref[] | fun(): troupe.Ref?
---@alias troupe.Strategy fun(routees: troupe.Ref[], state: troupe.RoutingState): troupe.Picked

local MAX_SIZE = 1000000

local size_rule = check.integer { min = 1 }

local strategy_rule = check.func()

local pool_schema = {
  on_routee_stop = check.one_of { "remove", "keep", "respawn", default = "remove" },
}

local scatter_schema = {
  on_routee_stop = pool_schema.on_routee_stop,
  timeout_ms = check.duration { default = 4500 },
}

-- The factory `where` was called by the user: its errors name that line, three levels up.
local function pool(where, routing, size, routee, routee_options, schema, options)
  local values = check.options(where, options, schema, 3)
  values.size = check.argument(where, "size", size, size_rule, 3)
  if values.size > MAX_SIZE then
    check.fail(where, ("size must be at most %d (got %d)"):format(MAX_SIZE, values.size), 3)
  end
  values.routee = recipe.of(where, routee, routee_options, 3)
  values.routing = routing
  values.factory = where
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
--- of them; an empty one drops the message. It may not wait. One that raises, or gives something
--- else, costs that one message, which is dead-lettered.
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

--- Asks every routee and answers with the first success.  (SG-1 .. SG-13)
---
--- A routee that replies with an error is out at once, and the others go on; when all fail, or none
--- has answered in time, the ask fails with an AggregateError whose `errors` are in the order of
--- the routees. Losers run on: what you ask must do no harm when it is done several times.
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

return Router
