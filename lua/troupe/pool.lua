--- What all pool routers have in common: their options, and the recipe of a pool.  (RTR-2, RTR-18)
local check = require "troupe.check"
local recipe = require "troupe.recipe"

local pool = {}

---@class troupe.PoolOptions
---@field on_routee_stop? "remove" | "keep" | "respawn"  default "remove": a routee that stopped
---  leaves the pool; "keep" dead-letters its share; "respawn" spawns it anew, at most 10 times a
---  minute (RTR-12)
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

local MAX_SIZE = 1000000

local MAX_DEPTH = 100 -- of routers as routees of routers

local size_rule = check.integer { min = 1, max = MAX_SIZE }

local schema = {
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

--- A schema of the options of a pool, and of `more`.
---@param more table<string, troupe.Rule>
---@return table<string, troupe.Rule>
function pool.options(more)
  local all = {}
  for name, rule in next, schema do all[name] = rule end
  for name, rule in next, more do all[name] = rule end
  return all
end

--- The schema of routers with no options of their own, which come last: `pool_options`.
pool.plain = pool.options {}

-- Which table of options comes first depends on the factory, and one in the other's place is the
-- likeliest mistake.
local function check_place(where, name, given, known, other, relation, level)
  if type(given) ~= "table" then return end
  for key in next, given do
    if known[key] == nil and other.schema[key] ~= nil then
      local message = "%s goes into %s, the argument %s %s"
      check.fail(where, message:format(key, other.name, relation, name), level + 1)
    end
  end
end

local function check_places(where, routee_options, options_schema, options, level)
  local is_plain = options_schema == pool.plain
  local own = { name = is_plain and "pool_options" or "options", schema = options_schema }
  local routees = { name = "routee_options", schema = recipe.options }
  check_place(where, routees.name, routee_options, routees.schema, own,
    is_plain and "after" or "before", level + 1)
  check_place(where, own.name, options, own.schema, routees, is_plain and "before" or "after",
    level + 1)
end

local function check_bounds(where, resizer, level)
  if not resizer or resizer.upper_bound >= resizer.lower_bound then return end
  local message = "resizer.upper_bound must be at least resizer.lower_bound, %d (got %d)"
  check.fail(where, message:format(resizer.lower_bound, resizer.upper_bound), level + 1)
end

--- The recipe of a pool. The factory `where` was called by the user: its errors name that line,
--- three levels up, so no factory may call this in tail position.
---@param where string           the factory, as the user calls it
---@param routing string         what the core calls it
---@param size any               routees, at least 1
---@param routee any             a troupe.Behavior
---@param routee_options any     troupe.SpawnOptions, or nil
---@param options_schema table<string, troupe.Rule>  of `pool.options`
---@param options any
---@return troupe.RouterBehavior
---@raise OptionsError
function pool.make(where, routing, size, routee, routee_options, options_schema, options)
  check_places(where, routee_options, options_schema, options, 3)
  local values = check.options(where, options, options_schema, 3)
  check_bounds(where, values.resizer, 3)
  values.size = check.argument(where, "size", size, size_rule, 3)
  values.routee = recipe.of(where, routee, routee_options, 3)
  values.depth = (values.routee.depth or 0) + 1
  if values.depth > MAX_DEPTH then
    check.fail(where, ("routers must not be nested more than %d deep"):format(MAX_DEPTH), 3)
  end
  values.routing = routing
  values.shown = ("%s(%d)"):format(where, values.size)
  return recipe.ready(values)
end

return pool
