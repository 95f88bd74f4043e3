--- What happens unseen. Nobody sees a system begin to stop an actor, take up a kill, start or
--- restart what has no hooks, or end its draining. Such a step is made up for when the first thing
--- is seen that follows from it. What is still to be seen tells which of several steps it was.
local actor = require "spec.model.actor"
local Model = require "spec.model.rules"

local must, has_ended, has_hook = Model.must, actor.has_ended, actor.has_hook
local is_stopped = actor.is_stopped

-- What is to be seen ------------------------------------------------------------------------------

-- The events about it, and the number of the first that is not expected yet.
local function to_come(self, a)
  local events = self.coming[a.path] or {}
  local i = (events.seen or 0) + 1
  for _, expected in ipairs(self.expected) do
    if expected.path == a.path and expected.kind ~= "dead_letter" then i = i + 1 end
  end
  return events, i
end

-- The next event about it, if it is of that kind.
local function will_be(self, a, kind)
  local events, i = to_come(self, a)
  return events[i] and events[i].kind == kind and events[i] or nil
end

--- Whether it will fail as one that was killed.
function Model:will_be_killed(a)
  local events, i = to_come(self, a)
  while events[i] and events[i].kind ~= "actor_stopped" do
    if events[i].kind == "actor_failed" and events[i].cause.killed == a.path then return true end
    i = i + 1
  end
  return false
end

--- Whether a new incarnation of it is seen before its end is.
function Model:will_begin_anew(a)
  for i = self.index, #self.log do
    local what, first, second = self.log[i].what, self.log[i][1], self.log[i][2]
    if what == "begins" and first == a.id then return second ~= "post_stop" end
    if what == "receives" and first == a.id then return true end
    if what == "event" and first.path == a.path then
      if first.kind == "actor_restarted" then return true end
      if first.kind == "actor_stopped" then return false end
    end
  end
  return false
end

-- Stops -------------------------------------------------------------------------------------------

--- Whether it has begun to stop.
function Model:has_begun_to_stop(a)
  if has_ended(a) then return a.phase == "stopping" end
  if self.terminating and not is_stopped(a) then self:must_have_drained() end
  if actor.takes_stop(a) or actor.takes_pill(a) or a.took_pill then
    self:begin_stop(a)
  elseif is_stopped(a) then
    local parent = a.parent
    if not actor.stops_children_to_restart(parent) then self:has_begun_to_stop(parent) end
    for _, child in ipairs(parent.children) do self:stop_now(child) end -- STOP-3: at the same time
  end
  return a.phase == "stopping"
end

-- Whether it takes no more mail.
local function has_closed(self, a) return has_ended(a) or self:has_begun_to_stop(a) end

--- Whether it begins to stop rather than to fail for that cause, where it could do either.
function Model:stops_before_it_fails(a, cause)
  if not is_stopped(a) then return false end
  local failure, hook = will_be(self, a, "actor_failed"), will_be(self, a, "hook_failed")
  return not (failure and self.same_cause(failure.cause, cause) or hook and hook.hook == "decider")
end

function Model:has_drained()
  for _, a in ipairs(self.actors) do
    if a.job then return false end
  end
  return true
end

--- The system has drained: all is at rest, and no handler waits.  (SYS-5)
function Model:must_have_drained()
  if self.ending then return end
  self:check_rest_of_all()
  must(self:has_drained(), "the system does not wait for its handlers to drain")
  self:begin_to_end()
end

-- Steps without hooks -----------------------------------------------------------------------------

-- Takes up a kill, or goes on where there is no hook; false when there is nothing of that kind.
local function step(self, a)
  local failure = will_be(self, a, "actor_failed")
  if failure and failure.cause.killed == a.path and actor.is_to_be_killed(a) then
    self:fail_killed(a)
  elseif will_be(self, a, "actor_started") and a.phase == "new" and not actor.is_held(a)
    and not has_hook(a, "pre_start") then
    self:end_hook(a, "pre_start")
  elseif will_be(self, a, "actor_restarted") and actor.can_begin_anew(a)
    and not has_hook(a, "post_restart", "pre_start") then
    self.begin_anew(a)
    self:end_hook(a, "post_restart")
  else
    return false
  end
  return not self.deciding
end

--- All that has happened to it before it does something.
function Model:catch_up(a)
  while step(self, a) do end
end

--- One that was killed fails, and its decider is asked, or one above it.
function Model:catch_up_with_kill(a)
  self:catch_up(a)
  if not self.deciding and actor.is_to_be_killed(a) then self:fail_killed(a) end
end

-- What explains an event, or an outcome -----------------------------------------------------------

local explain = {}

local function step_to_event(self, a)
  while #self.expected == 0 and step(self, a) do end
end

explain.actor_started = step_to_event
explain.actor_restarted = step_to_event
explain.actor_failed = step_to_event

function explain.actor_stopped(self, a)
  if has_hook(a, "post_stop") and a.started or not self:has_begun_to_stop(a) then return end
  if not a.job and #a.children == 0 then self:finish(a) end
end

-- A message that was refused, or the first of those that were left.
function explain.dead_letter(self, a, event)
  for i, item in ipairs(a.mailbox) do
    if item.may_be_refused and rawequal(item.message, event.message) then
      if not has_closed(self, a) then return end
      table.remove(a.mailbox, i)
      return self:lose(a, item)
    end
  end
  explain.actor_stopped(self, a)
end

--- An event that is not expected: what led to it is expected before all else.
function Model:explain_event(event)
  if not explain[event.kind] then return end
  local later = self.expected
  self.expected = {}
  explain[event.kind](self, self.by_path[event.path], event)
  table.move(later, 1, #later, #self.expected + 1, self.expected)
end

--- A letter that the system wrote after it had drained.
function Model:explain_end(event)
  local letters = self.expected
  self.expected = {}
  must(self.terminating, "%s: a letter of a system that does not terminate", event.path)
  self:must_have_drained()
  for _, letter in ipairs(letters) do
    if letter.reason == "stopped" then letter.reason = "system-terminated" end
  end
  self.expected = letters
end

--- An ask was refused by one that had begun to stop, or was what that had failed with.
function Model:explain_outcome(slot)
  local target = slot.target
  if not target then return end
  if target.failed and target.failed.slot == slot then return self:has_begun_to_stop(target) end
  for i, item in ipairs(target.mailbox) do
    if item.slot == slot and item.may_be_refused and has_closed(self, target) then
      table.remove(target.mailbox, i)
      return self:lose_request(slot)
    end
  end
end

return Model
