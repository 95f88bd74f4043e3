--- Recipes: what `spawn` makes actors from. A behavior and its options are read and checked here,
--- once, into a table that the core reads and nobody changes.  (SPAWN-2, SPAWN-3)
local check = require "troupe.check"
local supervision = require "troupe.supervision"

local recipe = {}

---@class troupe.Hooks
---@field receive fun(actor: troupe.Actor, message: any)
---@field pre_start? fun(actor: troupe.Actor)
---@field post_stop? fun(actor: troupe.Actor)
---@field pre_restart? fun(actor: troupe.Actor, reason: any, message: any)  default: post_stop
---@field post_restart? fun(actor: troupe.Actor, reason: any)               default: pre_start
---@field supervisor_strategy? troupe.SupervisorStrategy  for children that have none of their own
---@field stop_children_on_restart? boolean               default true
---@field drain_children? boolean  when it stops after its mail, so do they (STOP-3); default false

---@alias troupe.Receive fun(actor: troupe.Actor, message: any)
---@alias troupe.Behavior troupe.Receive | troupe.Hooks | troupe.RouterBehavior

---@class troupe.Recipe  what the core reads, among it:
---@field receive? troupe.Receive
---@field routing? string  of a router
---@field shown? string  of a router: what it is, for people
---@field routee? troupe.Recipe  of a pool
---@field members? (troupe.Ref | string)[]  of a group
---@field system_name? string  of a group: whose members these are, where that is known

---@alias troupe.Overflow "drop-head" | "drop-lowest" | "drop-new" | "reject"

---@class troupe.MailboxOptions  (MBX-2, MBX-3, MBX-7)
---@field capacity? integer  messages that may be queued; required without a `priority`
---@field overflow? troupe.Overflow  what is done when it is full; default "drop-head", or, with a
---  `priority`, "drop-lowest" in its place
---@field priority? fun(message: any): number  lower is handled first, equal ones in the order of
---  their arrival; it may not wait; where it raises or gives no number, the message comes last

---@class troupe.SpawnOptions
---@field supervisor_strategy? troupe.SupervisorStrategy  how its failures are treated
---@field mailbox? troupe.MailboxOptions  default: no bound
---@field stash_capacity? integer  messages it may set aside; default 1024
---@field throughput? integer  messages it may handle in a turn; default: the system's

--- The metatable of what router factories and `troupe.actor` give: read already.
local Ready = {
  __name = "troupe.Behavior",
  __tostring = function(self) return self.shown or "troupe.Behavior" end,
}

local hooks_schema = {
  receive = check.func { required = true },
  pre_start = check.func(),
  post_stop = check.func(),
  pre_restart = check.func(),
  post_restart = check.func(),
  supervisor_strategy = supervision.rule,
  stop_children_on_restart = check.boolean { default = true },
  drain_children = check.boolean { default = false },
}

--- The options of `spawn`.
recipe.options = {
  mailbox = check.record {
    capacity = check.any(),
    overflow = check.any(),
    priority = check.func(),
  },
  supervisor_strategy = supervision.rule,
  stash_capacity = check.integer { min = 1, max = 1 << 31 },
  throughput = check.integer { min = 1, max = 1000000 },
}

local capacity_rule = check.integer { min = 1, max = 1 << 31 }

local overflow_rule = check.one_of { "drop-head", "drop-new", "reject", default = "drop-head" }

local ranked_overflow_rule =
  check.one_of { "drop-lowest", "drop-new", "reject", default = "drop-lowest" }

-- What the rest of the mailbox's options must be depends on whether there is a priority.
local function read_mailbox(where, given, made, level)
  made.priority = given.priority
  if given.priority and given.capacity == nil and given.overflow == nil then return end
  local rule = given.priority and ranked_overflow_rule or overflow_rule
  made.capacity = check.argument(where, "mailbox.capacity", given.capacity, capacity_rule,
    level + 1)
  made.overflow = check.argument(where, "mailbox.overflow", given.overflow, rule, level + 1)
end

local function from_hooks(where, hooks, level)
  local values = check.options(where, hooks, hooks_schema, level + 1)
  values.children = values.supervisor_strategy
  values.keep_children = not values.stop_children_on_restart
  values.supervisor_strategy, values.stop_children_on_restart = nil, nil
  return values
end

local callable = check.func()

local function from_behavior(where, behavior, level)
  if type(behavior) == "function" then return { receive = behavior } end
  if getmetatable(behavior) == Ready then return behavior end
  if type(behavior) == "table" and not callable.test(behavior) then
    local values = from_hooks(where, behavior, level + 1)
    return values
  end
  if callable.test(behavior) then
    return { receive = function(actor, message) return behavior(actor, message) end }
  end
  local message = "the behavior must be a function, a table of hooks or a router (got %s)"
  check.fail(where, message:format(check.show(behavior)), level + 1)
end

local function copy(values)
  local fresh = {}
  for key, value in next, values do fresh[key] = value end
  return fresh
end

--- Reads a behavior with its options.
---@param where string     the function, as the user calls it
---@param behavior any
---@param options any      troupe.SpawnOptions, or nil
---@param level integer    as in `error`
---@return troupe.Recipe
---@raise OptionsError
function recipe.of(where, behavior, options, level)
  local base = from_behavior(where, behavior, level + 1)
  if options == nil then return base end
  local values = check.options(where, options, recipe.options, level + 1)
  local made = copy(base)
  made.own = values.supervisor_strategy or base.own
  made.stash_capacity = values.stash_capacity or base.stash_capacity
  made.throughput = values.throughput or base.throughput
  if values.mailbox then read_mailbox(where, values.mailbox, made, level + 1) end
  return made
end

--- Marks a recipe as a behavior that can be spawned many times.
---@param made table
---@return troupe.Behavior
function recipe.ready(made) return setmetatable(made, Ready) end

--- A behavior of hooks, read now rather than at each spawn.  (SPAWN-2)
---@param hooks troupe.Hooks
---@return troupe.Behavior
---@raise OptionsError at the caller's line
function recipe.actor(hooks)
  if type(hooks) ~= "table" then
    check.fail("actor", "hooks must be a table (got " .. check.show(hooks) .. ")", 2)
  end
  return recipe.ready(from_hooks("actor", hooks, 2))
end

return recipe
