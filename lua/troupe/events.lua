--- The event stream of a system: who wants to hear of which kind of event.  (EVT-1)
local check = require "troupe.check"
local text = require "troupe.text"

local events = {}

--- The metatable of dead letters, by which the core knows a message whose loss is none (DL-3).
events.DeadLetter = { __name = "troupe.DeadLetter" }

---@class troupe.Event
---@field kind string   "actor_stopped", ...
---@field [string] any  what that kind carries

---@class troupe.EventsHost  what a stream needs of the system around it
---@field is_ref fun(value: any): boolean
---@field tell fun(ref: any, event: troupe.Event)
---@field on_error fun(traceback: string, kind: string)    a receiver raised
---@field on_interest? fun(kind: string, wanted: boolean)  its first receiver came, its last went
---@field key? fun(ref: any): any  the same for equal refs; default: the ref itself

---@class troupe.Subscription  stands in a ring of those to its kind, in the order they came
---@field target any
---@field is_ref boolean
---@field previous troupe.Subscription
---@field next troupe.Subscription

---@class troupe.Events
---@field private host troupe.EventsHost
---@field private target_rule troupe.Rule
---@field private by_kind table<string, table>  the head of each ring; no ring is empty
---@field private by_target table<any, table<string, troupe.Subscription>>  by key, then kind
local Events = { __name = "troupe.Events" }
Events.__index = Events

local kind_rule = check.string()
local fields_rule = check.table { default = {} }
local callable = check.func()

-- What is equal for equal targets, to look them up by.
local function key_of(self, target)
  local host = self.host
  if host.key and host.is_ref(target) then return host.key(target) end
  return target
end

local function append(head, subscription)
  local last = head.previous
  subscription.previous, subscription.next = last, head
  last.next, head.previous = subscription, subscription
end

local function new_ring(subscription)
  local head = {}
  head.previous, head.next = head, head
  append(head, subscription)
  return head
end

local function announce(self, kind, wanted)
  if self.host.on_interest then self.host.on_interest(kind, wanted) end
end

--- Has every event of a kind given to a function, or told to an actor.  (EVT-1)
---@param target function|troupe.Ref
---@param kind string
---@return boolean new  false when it was subscribed to that kind already
---@raise OptionsError at the caller's line
function Events:subscribe(target, kind)
  check.argument("subscribe", "target", target, self.target_rule, 2)
  check.argument("subscribe", "kind", kind, kind_rule, 2)
  local key = key_of(self, target)
  local own = self.by_target[key] or {}
  if own[kind] then return false end

  local subscription = { target = target, is_ref = self.host.is_ref(target) }
  own[kind] = subscription
  self.by_target[key] = own
  local head = self.by_kind[kind]
  if head then
    append(head, subscription)
  else
    self.by_kind[kind] = new_ring(subscription)
    announce(self, kind, true)
  end
  return true
end

local function drop(self, key, kind)
  local own = self.by_target[key]
  local subscription = own and own[kind]
  if not subscription then return false end

  own[kind] = nil
  if next(own) == nil then self.by_target[key] = nil end
  local before, after = subscription.previous, subscription.next
  before.next, after.previous = after, before
  if before == after then -- the head alone is left
    self.by_kind[kind] = nil
    announce(self, kind, false)
  end
  return true
end

local function drop_all(self, key)
  local kinds = {}
  for kind in next, self.by_target[key] or {} do kinds[#kinds + 1] = kind end
  for _, kind in ipairs(kinds) do drop(self, key, kind) end
  return #kinds > 0
end

--- Takes a subscription back.  (EVT-1)
---@param target function|troupe.Ref
---@param kind? string  default: every kind
---@return boolean found  whether there was one
---@raise OptionsError at the caller's line
function Events:unsubscribe(target, kind)
  check.argument("unsubscribe", "target", target, self.target_rule, 2)
  local key = key_of(self, target)
  if kind == nil then return drop_all(self, key) end
  check.argument("unsubscribe", "kind", kind, kind_rule, 2)
  return drop(self, key, kind)
end

--- Drops an actor that has stopped, from every kind. O(1) for one that never subscribed.  (EVT-1)
---@param ref troupe.Ref
function Events:remove(ref)
  drop_all(self, key_of(self, ref))
end

--- Whether anyone would get an event of this kind. O(1).
---@param kind string
---@return boolean
function Events:wants(kind)
  return self.by_kind[kind] ~= nil
end

local function listed(head)
  local list, subscription = {}, head.next
  while subscription ~= head do
    list[#list + 1] = subscription
    subscription = subscription.next
  end
  return list
end

local function traceback(reason)
  return debug.traceback(text.of(reason), 2)
end

local function deliver(host, subscription, event)
  if subscription.is_ref then return xpcall(host.tell, traceback, subscription.target, event) end
  return xpcall(subscription.target, traceback, event)
end

--- Gives an event to all who are subscribed to its kind now, in the order they subscribed.  (EVT-1)
---
--- Who subscribes or unsubscribes meanwhile changes nothing. One that raises is reported to the
--- system, with a traceback, and the rest still get the event, which is one table for all of them.
---@param kind string
---@param fields? table  copied into the event; must not hold "kind"
---@raise OptionsError at the caller's line
function Events:publish(kind, fields)
  check.argument("publish", "kind", kind, kind_rule, 2)
  fields = check.argument("publish", "fields", fields, fields_rule, 2)
  if rawget(fields, "kind") ~= nil then
    check.fail("publish", 'fields must not hold "kind"', 2)
  end
  local head = self.by_kind[kind]
  if not head then return end

  local event = setmetatable({}, kind == "dead_letter" and events.DeadLetter or nil)
  for key, value in next, fields do event[key] = value end
  event.kind = kind
  for _, subscription in ipairs(listed(head)) do
    local ok, reason = deliver(self.host, subscription, event)
    if not ok then self.host.on_error(reason, kind) end
  end
end

--- A stream without subscriptions.
---@param host troupe.EventsHost
---@return troupe.Events
function events.new(host)
  local target_rule = {
    expected = "a function or a ref",
    test = function(value) return host.is_ref(value) or callable.test(value), value end,
  }
  return setmetatable({
    host = host,
    target_rule = target_rule,
    by_kind = {},
    by_target = {},
  }, Events)
end

return events
