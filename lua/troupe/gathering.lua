--- The factories of routers that gather: settings of one engine.  (SG-1 .. SG-18)
---
--- They ask several of their routees, all at once or one after another, and answer with what those
--- reply.
local check = require "troupe.check"
local pool = require "troupe.pool"

local gathering = {}

---@class troupe.ScatterOptions : troupe.PoolOptions
---@field timeout_ms? number  of a whole scatter; default 4500, below the 5000 of `ask` (SG-6)
---@field cancel_losers? boolean  a request that is not wanted any more is withdrawn, or its
---  handler's wait ends (SG-14); default false: losers run on

---@class troupe.HedgedOptions : troupe.ScatterOptions  `delay_ms` or `percentile` (SG-15)
---@field delay_ms? number    how long an answer may take before the next routee is asked
---@field percentile? number  the same, as a share of the router's own latencies: between 0 and 1;
---  default 0.95; until 20 answers are known, only failures make it ask the next
---@field max_extra_load? number  the share of requests that may be hedges; in a burst ten, or that
---  share of the requests of the last ten seconds; default 0.1; 0: none, only failures make it ask
---  the next

---@class troupe.TailChoppingOptions : troupe.ScatterOptions  (SG-16)
---@field interval_ms? number  between two that are asked; default 10

---@class troupe.GatherOptions : troupe.ScatterOptions  (SG-17)
---@field wait_for? integer | "majority" | "all"  replies that are needed; default "all"

---@class troupe.Reply
---@field routee troupe.Ref  who gave it
---@field value any

-- The options of a pool, of a scatter, and `more`.
local function scatter_options(more)
  local schema = pool.options {
    timeout_ms = check.duration { default = 4500 },
    cancel_losers = check.boolean { default = false },
  }
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
function gathering.scatter_gather_first_completed(size, routee, options, routee_options)
  local made = pool.make("Router.scatter_gather_first_completed",
    "scatter_gather_first_completed", size, routee, routee_options, scatter_schema, options)
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
function gathering.hedged(size, routee, options, routee_options)
  local made = pool.make("Router.hedged", "hedged", size, routee, routee_options, hedged_schema,
    options)
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
function gathering.tail_chopping(size, routee, options, routee_options)
  local made = pool.make("Router.tail_chopping", "tail_chopping", size, routee, routee_options,
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
function gathering.scatter_gather(size, routee, options, routee_options)
  local made = pool.make("Router.scatter_gather", "scatter_gather", size, routee, routee_options,
    gather_schema, options)
  local most = made.resizer and made.resizer.upper_bound or made.size
  if math.type(made.wait_for) and made.wait_for > most then
    check.fail("Router.scatter_gather", ("wait_for must be at most %s, %d (got %d)"):format(
      made.resizer and "the resizer's upper_bound" or "the size", most, made.wait_for), 2)
  end
  made.list = true
  return made
end

return gathering
