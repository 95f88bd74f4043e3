--- What a scatter of three comes to, as docs/behaviour.md says. Its methods are what may happen.
local gather = {}
gather.__index = gather

local SIZE = 3

--- What each routee replies with, and what it fails with.
gather.replies = { "found by routee-1", "found by routee-2", "found by routee-3" }
gather.failures = { "Broken: no disk", "Broken: no light", "Broken: no air" }

---@param caller "actor" | "task" | "sender"  an actor or a task that asks; an actor that tells
---@return table model  `heard` is what its caller has heard, `lost` what came too late for that
function gather.new(caller)
  return setmetatable({ caller = caller, legs = {}, looked = {} }, gather)
end

-- The caller hears one thing, or nothing when it has stopped.
local function tell_caller(self, what)
  if self.heard then return end
  if self.is_gone then self.lost = what else self.heard = what end
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

-- SG-5
local function fail_leg(self, leg, err)
  if self.outcome or self.legs[leg] then return end
  self.legs[leg] = err
  for i = 1, SIZE do
    if not self.legs[i] then return end
  end
  fail(self, "all-failed", "all 3 routees failed", self.legs)
end

--- SG-1
function gather:reply(leg)
  if not self.legs[leg] then settle(self, "first", gather.replies[leg], "routee-" .. leg) end
end

--- SG-2
function gather:failure(leg) fail_leg(self, leg, gather.failures[leg]) end

--- ASK-7: somebody else may still answer for one that has looked at its sender.
function gather:stop(leg)
  if not self.looked[leg] then fail_leg(self, leg, "ActorStoppedError") end
end

--- SG-7: nothing comes of it.
function gather:restart() end

--- SG-5
function gather:deadline()
  local members, late = {}, 0
  for leg = 1, SIZE do
    members[leg] = self.legs[leg] or "AskTimeoutError"
    if not self.legs[leg] then late = late + 1 end
  end
  if late == SIZE then
    fail(self, "timeout", "none of 3 routees replied within", members)
  else
    fail(self, "all-failed", "all 3 routees failed", members)
  end
end

--- SG-8: it restarts, or stops.
function gather:router_end()
  fail(self, "stopped", "stopped while the scatter was still open", {})
end

--- A task is told that it was cancelled (ASK-11). An actor that waits never goes on, even when the
--- answer is there (LIFE-9). One that is told the answer gets what comes before its stop (STOP-1).
function gather:caller_end()
  if self.caller == "task" then return tell_caller(self, "CancelledError, from nobody") end
  if self.caller == "actor" then self.heard = nil end
  self.is_gone = true
end

--- ASK-6
function gather:callers_deadline() tell_caller(self, "AskTimeoutError, from nobody") end

return gather
