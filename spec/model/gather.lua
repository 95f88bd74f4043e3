--- What a scatter of three comes to, as docs/behaviour.md says. Its methods are what may happen.
local gather = {}
gather.__index = gather

--- What each routee replies with, and what it fails with.
gather.replies = { "found by routee-1", "found by routee-2", "found by routee-3" }
gather.failures = { "Broken: no disk", "Broken: no light", "Broken: no air" }

---@class spec.Gather
---@field caller "actor" | "task" | "sender"  an actor or a task that asks; an actor that tells
---@field size integer       routees that are asked
---@field needed integer     replies
---@field has_list boolean   it answers with a list of those
---@field sorts boolean      the members of its errors are in alphabetical order
---@field is_stream boolean  its caller hears each answer as it comes

--- A scatter. `heard` is what its caller has heard, and when; `lost`, what came too late for that;
--- `outcome`, what is counted; `now`, the time.
---@param settings spec.Gather
---@return table model
function gather.new(settings)
  local self = {
    legs = {}, looked = {}, has_let_go = {}, heard = {}, replied = 0, failed = 0, now = 0,
  }
  for key, value in pairs(settings) do self[key] = value end
  return setmetatable(self, gather)
end

-- A caller hears one thing, but of a stream, and nothing when it has stopped.
local function tell_caller(self, what)
  if self.is_gone then
    self.lost = what
  elseif self.is_stream or not self.heard[1] then
    self.heard[#self.heard + 1] = ("%g: %s"):format(self.now, what)
  end
end

local function settle(self, outcome, answer, from)
  if self.outcome then return end
  self.outcome = outcome
  tell_caller(self, ("%s, from %s"):format(answer, from))
end

local function fail(self, outcome, message, members)
  local text = ("AggregateError: %s {%s}"):format(message, table.concat(members, "; "))
  settle(self, outcome, text, "replicas")
end

-- What the legs have come to so far, in the order they were asked.
local function gathered(self, kind)
  local list = {}
  for leg = 1, self.size do
    if self.legs[leg] and self.legs[leg][kind] then list[#list + 1] = self.legs[leg][kind] end
  end
  return list
end

-- SG-5, SG-17
local function fall_short(self)
  local members = gathered(self, "failure")
  if self.sorts then table.sort(members) end
  local late = self.late or 0
  if self.failed == self.size and late == self.size then
    return fail(self, "timeout", ("none of %d routees replied within"):format(self.size), members)
  elseif self.failed == self.size then
    return fail(self, "all-failed", ("all %d routees failed"):format(self.size), members)
  elseif self.late then
    local message = "only %d of %d routees replied within, and %d were needed"
    return fail(self, "timeout", message:format(self.replied, self.size, self.needed), members)
  end
  local message = "%d of %d routees failed, and %d replies were needed"
  fail(self, "all-failed", message:format(self.failed, self.size, self.needed), members)
end

-- SG-1, SG-17, SG-18
local function check(self, leg, answer)
  if self.is_stream then
    tell_caller(self, ("%s, from routee-%d"):format(answer, leg))
    if self.replied + self.failed == self.size then settle(self, "none", "the end", "nobody") end
  elseif self.replied == self.needed and self.has_list then
    settle(self, "enough", ("{%s}"):format(table.concat(gathered(self, "reply"), "; ")), "replicas")
  elseif self.replied == self.needed then
    settle(self, "first", answer, "routee-" .. leg)
  elseif self.size - self.failed < self.needed and not self.is_expiring then
    fall_short(self)
  end
end

local function close_leg(self, leg, what, answer)
  if self.outcome or self.legs[leg] or leg > self.size then return end
  self.legs[leg] = { [what] = answer }
  if what == "reply" then self.replied = self.replied + 1 else self.failed = self.failed + 1 end
  check(self, leg, answer)
end

function gather:reply(leg) close_leg(self, leg, "reply", gather.replies[leg]) end

--- SG-2
function gather:failure(leg) close_leg(self, leg, "failure", gather.failures[leg]) end

--- ASK-7: somebody else may still answer for one that has looked at its sender.
function gather:stop(leg)
  if self.looked[leg] or self.has_let_go[leg] then return end
  close_leg(self, leg, "failure", "ActorStoppedError")
end

--- SG-7: nothing comes of it, nor of a later stop.
function gather:restart(leg) self.has_let_go[leg] = true end

function gather:deadline()
  if self.outcome then return end
  self.is_expiring, self.late = true, 0
  for leg = 1, self.size do
    if not self.legs[leg] then
      self.late = self.late + 1
      close_leg(self, leg, "failure", "AskTimeoutError")
    end
  end
  if not self.outcome then fall_short(self) end -- a stream is over then
end

--- SG-8: it restarts, or stops. Its routees stop, which is what a stream hears of.
function gather:router_end()
  if not self.is_stream then
    return fail(self, "stopped", "stopped while the scatter was still open", {})
  end
  for leg = 1, self.size do self:stop(leg) end
end

-- A stream ends with whoever takes from it. A task that waits no more takes what has ended its
-- wait, and ends itself where it begins another.
local function stream_ends(self)
  local taken = self.taken
  if self.caller == "actor" then
    self.heard = table.move(self.heard, 1, taken, 1, {})
  elseif self.heard[taken + 1] then
    self.heard = table.move(self.heard, 1, taken + 1, 1, {})
  else
    tell_caller(self, "the end, from nobody")
  end
  self.outcome, self.is_gone = "none", true
end

--- A task is told that it was cancelled (ASK-11). An actor that waits never goes on, even when the
--- answer is there (LIFE-9). One that is told the answer gets what comes before its stop (STOP-1).
function gather:caller_end()
  if self.is_stream then return stream_ends(self) end
  if self.caller == "task" then return tell_caller(self, "CancelledError, from nobody") end
  if self.caller == "actor" then self.heard = {} end
  self.is_gone = true
end

--- Time goes on: what has been heard so far has been taken.
function gather:time(now) self.now, self.taken = now, #self.heard end

--- ASK-6
function gather:callers_deadline() tell_caller(self, "AskTimeoutError, from nobody") end

return gather
