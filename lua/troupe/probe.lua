--- Probes: actors whose mail a test looks at. The idea is that of Akka's TestProbe.  (TK-2)
---
---     local probe = kit:probe()
---     greeter:tell("world", probe.ref)
---     probe:expect("hello, world")
---
--- What a probe is told is kept, in order, until the test takes it. Where nothing has come yet the
--- test waits: virtual time goes on to the moment when the message comes, at most by the time-out.
--- What comes at the very end of that is late. Whatever fails raises a string, at the test's line,
--- and takes nothing.
local check = require "troupe.check"
local core = require "troupe.core"
local messages = require "troupe.messages"
local refs = require "troupe.ref"
local text = require "troupe.text"

local MAX_SHOWN = 20

---@class troupe.Probe
---@field ref troupe.Ref
---@field last_sender troupe.Ref?      of the message that was taken last
---@field private kit troupe.Kit
---@field private mail table<integer, troupe.ProbeMail>  what was not taken yet, by number
---@field private first integer        number of the oldest message in `mail`
---@field private last integer         number of the latest; less than `first` when there is none
---@field private waiting troupe.Ref[] who is to hear of the next message
local Probe = { __name = "troupe.Probe" }
Probe.__index = Probe

---@class troupe.ProbeMail
---@field message any
---@field sender troupe.Ref?
---@field at number  virtual milliseconds

-- What a probe tells its own actor, whose messages are all kept but for these.
local Order = {}

local function order(run) return setmetatable({ run = run }, Order) end

local function wake(self)
  for _, waiter in ipairs(self.waiting) do waiter:tell(true) end
  self.waiting = {}
end

-- How many messages have not been taken.
local function count(self) return self.last - self.first + 1 end

local function receive(self, actor, message)
  if getmetatable(message) == Order then return message.run(actor) end
  self.last = self.last + 1
  self.mail[self.last] = { message = message, sender = actor.sender, at = self.kit:now() }
  wake(self)
end

-- Some 285 years. What is so far off that it never comes could not be waited for.
local MAX_MS = 9e12

-- Waits until there are `enough` messages. Gives nil when they are there, else why they are not.
local function await(self, enough, timeout)
  local deadline = self.kit:now() + math.min(timeout, MAX_MS)
  while count(self) < enough do
    local left = deadline - self.kit:now()
    if left <= 0 then return "late" end
    local _, err = self.ref:ask(order(function(actor)
      self.waiting[#self.waiting + 1] = actor.sender
      if count(self) >= enough then wake(self) end
    end), left)
    if err and err.name ~= "AskTimeoutError" then return "stopped" end
  end
end

-- Takes the first `n` messages, and gives the last of them.
local function take(self, n)
  local last = self.first + n - 1
  local taken = self.mail[last]
  for i = self.first, last do self.mail[i] = nil end
  self.first = last + 1
  self.last_sender = taken.sender
  return taken.message
end

local function list_mail(self)
  local lines = {}
  for i = self.first, math.min(self.last, self.first + MAX_SHOWN - 1) do
    local one = self.mail[i]
    local from = one.sender and (" from %s"):format(one.sender) or ""
    lines[#lines + 1] = ("\n  %s%s at %.14g ms"):format(text.inspect(one.message), from, one.at)
  end
  local more = count(self) - #lines
  if more > 0 then lines[#lines + 1] = ("\n  and %d more"):format(more) end
  return table.concat(lines)
end

-- `why` is what `await` gave; `level` is as in `check.fail`.
local function fail(self, where, expected, why, timeout, level)
  local within = why == "late" and (" within %.14g ms"):format(timeout) or ""
  local stopped = why == "stopped" and "the probe has stopped; " or ""
  local came = count(self) == 0 and "nothing came" or "this came:" .. list_mail(self)
  error(("%s: expected %s%s; %s%s"):format(where, expected, within, stopped, came), level + 1)
end

local function same(a, b, compared)
  if a == b or a ~= a and b ~= b then return true end
  local meta = debug.getmetatable(a)
  if type(a) ~= "table" or type(b) ~= "table" or meta ~= debug.getmetatable(b) then return false end
  if meta and rawget(meta, "__eq") then return false end
  compared[a] = compared[a] or {}
  if compared[a][b] then return true end -- there again: a cycle
  compared[a][b] = true
  for key, value in next, a do
    if not same(value, rawget(b, key), compared) then return false end
  end
  for key in next, b do
    if rawget(a, key) == nil then return false end
  end
  return true
end

local timeout_rule = check.duration { default = 3000 }
local span_rule = check.number { positive = true, max = MAX_MS }
local count_rule = check.integer { min = 1 }
local function_rule = check.func()

--- The next message is to be this one. Tables are compared by what they hold, where they have the
--- same metatable; one that has `__eq` decides itself. NaN equals NaN.
---@param message any
---@param timeout_ms? number  default 3000
---@return any message  the one that came
---@raise string, at the caller's line; OptionsError
function Probe:expect(message, timeout_ms)
  local timeout = check.argument("expect", "timeout_ms", timeout_ms, timeout_rule, 2)
  local why = await(self, 1, timeout)
  if why or not same(message, self.mail[self.first].message, {}) then
    fail(self, "expect", text.inspect(message), why, timeout, 2)
  end
  return take(self, 1)
end

--- The next message is to be one that the function says yes to.
---@param fn fun(message: any, sender: troupe.Ref?): any
---@param timeout_ms? number  default 3000
---@return any message
---@raise string, at the caller's line; OptionsError
function Probe:expect_match(fn, timeout_ms)
  check.argument("expect_match", "fn", fn, function_rule, 2)
  local timeout = check.argument("expect_match", "timeout_ms", timeout_ms, timeout_rule, 2)
  local why = await(self, 1, timeout)
  local next_mail = self.mail[self.first]
  if why or not fn(next_mail.message, next_mail.sender) then
    fail(self, "expect_match", "a message that matches", why, timeout, 2)
  end
  return take(self, 1)
end

--- The next message is to be the `Terminated` of this actor, which the probe watches.
---@param ref troupe.Ref
---@param timeout_ms? number  default 3000
---@return { actor: troupe.Ref } message
---@raise string, at the caller's line; OptionsError
function Probe:expect_terminated(ref, timeout_ms)
  check.argument("expect_terminated", "the actor", ref, refs.rule, 2)
  local timeout = check.argument("expect_terminated", "timeout_ms", timeout_ms, timeout_rule, 2)
  local why = await(self, 1, timeout)
  if why or not same(messages.terminated(ref), self.mail[self.first].message, {}) then
    fail(self, "expect_terminated", ("the end of %s"):format(ref), why, timeout, 2)
  end
  return take(self, 1)
end

--- No message is to be there or to come, for so long.
---@param ms number
---@raise string, at the caller's line; OptionsError
function Probe:expect_none(ms)
  check.argument("expect_none", "ms", ms, span_rule, 2)
  local why = await(self, 1, ms)
  if why ~= "late" then
    fail(self, "expect_none", ("nothing within %.14g ms"):format(ms), why, ms, 2)
  end
end

--- Takes messages until the function says yes to one, and gives that one.
---@param fn fun(message: any, sender: troupe.Ref?): any
---@param timeout_ms? number  for all of them; default 3000
---@return any message
---@raise string, at the caller's line; OptionsError
function Probe:fish(fn, timeout_ms)
  check.argument("fish", "fn", fn, function_rule, 2)
  local timeout = check.argument("fish", "timeout_ms", timeout_ms, timeout_rule, 2)
  local deadline, seen = self.kit:now() + timeout, 0
  while true do
    local why = await(self, seen + 1, deadline - self.kit:now())
    if why then fail(self, "fish", "a message that matches", why, timeout, 2) end
    local mail = self.mail[self.first + seen]
    seen = seen + 1
    if fn(mail.message, mail.sender) then return take(self, seen) end
  end
end

--- Takes the next `n` messages.
---@param n integer
---@param timeout_ms? number  for all of them; default 3000
---@return any[] messages  in the order they came
---@raise string, at the caller's line; OptionsError
function Probe:receive_n(n, timeout_ms)
  check.argument("receive_n", "n", n, count_rule, 2)
  local timeout = check.argument("receive_n", "timeout_ms", timeout_ms, timeout_rule, 2)
  local why = await(self, n, timeout)
  if why then fail(self, "receive_n", ("%d messages"):format(n), why, timeout, 2) end
  local list = {}
  for i = 1, n do list[i] = take(self, 1) end
  return list
end

--- Answers whoever sent the message that was taken last.
---@param value any
---@raise OptionsError at the caller's line, when that message had no sender
function Probe:reply(value)
  if not self.last_sender then check.fail("reply", "the message taken last has no sender", 2) end
  self.last_sender:tell(value, self.ref)
end

--- Has the probe told when this actor stops.
---@param ref troupe.Ref
---@return troupe.Ref ref
---@raise OptionsError at the caller's line
function Probe:watch(ref)
  check.argument("watch", "the actor", ref, refs.rule, 2)
  if ref == self.ref or core.ref_system(ref) ~= self.kit.system or not core.ref_parent(ref) then
    check.fail("watch", ("%s must be another actor of the kit's system"):format(ref), 2)
  end
  self.ref:tell(order(function(actor) actor:watch(ref) end))
  return ref
end

local probe = {}

--- A probe, and the behavior of its actor; `ref` is for the caller to set.
---@param kit troupe.Kit
---@return troupe.Probe
---@return troupe.Behavior
function probe.new(kit)
  local made = setmetatable({ kit = kit, mail = {}, first = 1, last = 0, waiting = {} }, Probe)
  return made, {
    receive = function(actor, message) receive(made, actor, message) end,
    post_stop = function() wake(made) end,
  }
end

return probe
