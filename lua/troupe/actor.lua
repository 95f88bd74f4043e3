--- The actor that every function of a behavior gets: what it finds there besides its own fields.
local check = require "troupe.check"
local core = require "troupe.core"
local path = require "troupe.path"
local systems = require "troupe.systems"
local timers = require "troupe.timers"

---@class troupe.Actor
---@field ref troupe.Ref          its own
---@field path troupe.Path
---@field name string
---@field sender troupe.Ref?      of the message in hand (TELL-4)
---@field parent troupe.Ref
---@field children troupe.Ref[]   live ones, in the order they were spawned
---@field system troupe.System
---@field log troupe.Logger
---@field timers troupe.Timers
---@field spawn fun(self: troupe.Actor, behavior: troupe.Behavior, name?: string,
---  options?: troupe.SpawnOptions): troupe.Ref  a child, "$<n>" by default; raises OptionsErrors at
---  the caller's line (SPAWN-1)
---@field reply fun(self: troupe.Actor, value: any): boolean  false when nobody asked (ASK-5)
---@field fail fun(self: troupe.Actor, err: any): boolean     fails the ask (ASK-5)
---@field cancelled fun(self: troupe.Actor): boolean  the answer to the request in hand is not
---  wanted any more (SG-14)
---@field stash fun(self: troupe.Actor)        sets the message in hand aside (STASH-1)
---@field unstash_all fun(self: troupe.Actor)  puts all that is aside back in front (STASH-1)
---@field set_receive_timeout fun(self: troupe.Actor, ms: number?)  tells it troupe.ReceiveTimeout
---  after `ms` without user mail, again and again; nil: no more (TMR-7)
---@field forward fun(self: troupe.Actor, ref: troupe.Ref, most: integer?)  tells it the message in
---  hand, or dead-letters that when `most` messages wait there (TELL-3)
---@field watch fun(self: troupe.Actor, ref: troupe.Ref): troupe.Ref  tells it when that
---  actor has stopped (WATCH-1)
---@field watch_with fun(self: troupe.Actor, ref: troupe.Ref, message: any): troupe.Ref  the same,
---  by that message (WATCH-3)
---@field unwatch fun(self: troupe.Actor, ref: troupe.Ref)  takes that back (WATCH-2)
---@field stop fun(self: troupe.Actor, child?: troupe.Ref)  itself when done; a child at
---  once (STOP-2)
local Actor = core.actor_methods

-- What is built in besides methods; `ref` and `sender` are the core's.
local fields = {
  path = function(ref) return path.of(core.ref_path(ref)) end,
  name = core.ref_name,
  parent = core.ref_parent,
  children = core.children,
  system = core.ref_system,
  log = function(ref) return systems.state(core.ref_system(ref)).log:logger(core.ref_path(ref)) end,
  timers = function(_, actor) return timers.of(actor) end,
}

local names = { ref = true, sender = true }
for name in next, fields do names[name] = true end

core.open_actor(function(ref, key, actor)
  local field = fields[key]
  return field and field(ref, actor)
end, names)

-- What an actor has become, the latest last; without anything, its behavior's own function. It is
-- found by the actor table, so it ends with the incarnation.
local became = setmetatable({}, { __mode = "k" })

local function_rule = check.func()
local mapper_rule = check.func { default = function(value, err)
  return { value = value, err = err }
end }
local become_schema = { push = check.boolean { default = false } }

--- Has another function handle messages, from the next one on, until a restart.  (BEC-1)
---@param receive troupe.Receive
---@param options? { push: boolean? }  push: `unbecome` comes back to what there was before
---@raise OptionsError at the caller's line
function Actor:become(receive, options)
  check.argument("become", "the function", receive, function_rule, 2)
  local push = check.options("become", options, become_schema, 2).push
  core.become(self, receive)
  local stack = became[self] or {}
  became[self] = stack
  stack[push and #stack + 1 or math.max(#stack, 1)] = receive
end

--- Goes back to what it was before the latest `become` that pushed, at most to its behavior's own
--- function.  (BEC-1)
function Actor:unbecome()
  local stack = became[self] or {}
  stack[#stack] = nil
  core.become(self, stack[#stack])
end

--- Runs a function as a task, and tells the actor what came of it: `{ value = v, err = e }`, `err`
--- when it raised or gave nil and an error.  (PAT-1)
---
--- As with a timer, the message has no sender, and ends with the incarnation.
---@param fn fun(): any, any  may wait
---@param mapper? fun(value: any, err: any): any  makes another message; it may wait
---@raise OptionsError at the caller's line
function Actor:pipe_to_self(fn, mapper)
  local ref = core.actor_ref(self, "pipe_to_self")
  check.argument("pipe_to_self", "the function", fn, function_rule, 2)
  mapper = check.argument("pipe_to_self", "the mapper", mapper, mapper_rule, 2)
  core.ref_system(ref):go(function()
    local ok, value, err = pcall(fn)
    if not ok then
      value, err = nil, value or ("(error object is a %s value)"):format(type(value))
    elseif value ~= nil then
      err = nil
    end
    core.timer_start(self, mapper(value, err), 0, 0, 0)
  end)
end

local name_rule = check.string()

--- The live child with that name.
---@param name string
---@return troupe.Ref?
---@raise OptionsError at the caller's line
function Actor:child(name)
  local ref = core.actor_ref(self, "child")
  return core.child(ref, check.argument("child", "name", name, name_rule, 2))
end
