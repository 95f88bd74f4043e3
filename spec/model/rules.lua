--- What follows from what, as docs/behaviour.md says. The model is a tree of records (see
--- actor.lua), and it has no scheduler: its methods are told what happens, one thing after another.
--- Here are the rules of mail, stopping, restarts and supervision; in acts.lua what code of actors
--- does, in seen.lua what is seen of them.
local actor = require "spec.model.actor"

local has_ended = actor.has_ended

local Model = {}
Model.__index = Model

--- Raises what is wrong.
function Model.must(condition, message, ...)
  if not condition then error(message:format(...), 0) end
end

local function remove(list, value)
  for i, item in ipairs(list) do
    if item == value then return table.remove(list, i) end
  end
end

-- Events ------------------------------------------------------------------------------------------

--- An event is published: it is to be seen, in its turn.
function Model:expect(kind, a, fields)
  fields = fields or {}
  fields.kind, fields.path = kind, a.path
  self.expected[#self.expected + 1] = fields
end

function Model:count(level) self.records[level] = self.records[level] + 1 end

-- SUP-8
function Model:publish_failure(a, directive, why)
  self:expect("actor_failed", a, { directive = directive, why = why, cause = a.cause })
  self:count((directive == "resume" or directive == "restart") and "warn" or "error")
end

-- LIFE-7
function Model:publish_hook_failure(a, hook, cause)
  self:expect("hook_failed", a, { hook = hook, cause = cause })
  self:count("error")
end

-- DL-1
function Model:dead_letter(a, item, reason)
  local sender = item.slot and "reply ref" or item.sender
  self:expect("dead_letter", a, { message = item.message, sender = sender, reason = reason })
end

-- Waits -------------------------------------------------------------------------------------------

--- TMR-5: deadlines pass by due time, and in the order they were made.
function Model:at(due, pass)
  local i = #self.deadlines + 1
  while i > 1 and self.deadlines[i - 1].due > due do i = i - 1 end
  local deadline = { due = due, pass = pass }
  table.insert(self.deadlines, i, deadline)
  return deadline
end

--- What can be waited for; `outcome` is what it gives when time is over. `requests` of an ask are
--- those that are queued, stashed or in hand.
function Model:new_slot(ms, outcome)
  local slot = { requests = 0 }
  slot.deadline = self:at(self.now + ms, function() self:settle(slot, outcome) end)
  return slot
end

function Model:settle(slot, outcome)
  if slot.outcome then return end
  slot.outcome = outcome
  remove(self.deadlines, slot.deadline)
end

--- ASK-7: no reply can come any more, unless somebody has looked at the reply ref and may have kept
--- it. True when the asker knows that, or has its answer.
function Model:lose_request(slot)
  slot.requests = slot.requests - 1
  if slot.outcome then return true end
  if slot.requests > 0 or slot.shown then return false end
  self:settle(slot, { error = self.ending and "SystemTerminatedError" or "ActorStoppedError" })
  return true
end

--- It is not in hand any more; `is_lost` when its actor stops.
function Model:let_go(item, is_lost)
  if not item or not item.slot then return end
  if is_lost then
    self:lose_request(item.slot)
  else
    item.slot.requests = item.slot.requests - 1
  end
end

-- Mail --------------------------------------------------------------------------------------------

-- DL-1, DL-4
function Model:lose(a, item)
  if item.kind ~= "mail" then return end
  if item.slot and self:lose_request(item.slot) then return end
  self:dead_letter(a, item, self.ending and "system-terminated" or "stopped")
end

--- TELL-5, STOP-1
function Model:deliver(a, item)
  if item.slot then item.slot.requests = item.slot.requests + 1 end
  if a.closed then return self:lose(a, item) end
  item.may_be_refused = self.terminating or actor.is_stopped(a)
  a.mailbox[#a.mailbox + 1] = item
  if item.kind == "pill" then a.closed = true end
end

-- Death watch: a notice is active until it is taken up or taken back.

--- WATCH-2
function Model:watch(notice, target)
  if target.phase == "stopped" then
    self:notify(notice)
  else
    target.watchers[#target.watchers + 1] = notice
  end
end

function Model:notify(notice)
  if notice.slot then return self:settle(notice.slot, { value = true }) end
  local mailbox = notice.watcher.mailbox
  mailbox[#mailbox + 1] = { kind = "notice", notice = notice }
end

function Model.end_notice(notice)
  notice.active = false
  notice.watcher.watches[notice.target] = nil
  remove(notice.target.watchers, notice)
end

-- Stopping ----------------------------------------------------------------------------------------

local function cancel_timers(a)
  for _, timer in pairs(a.timers) do timer.active = false end
  a.timers = {}
end

local function give_up_wait(a)
  if a.job then a.job.closing = true end -- LIFE-9
end

function Model:begin_stop(a)
  if a.phase == "failed" then self:let_go(a.failed, true) end
  a.phase, a.closed, a.stop, a.killed, a.failed = "stopping", true, nil, false, nil
  give_up_wait(a)
  cancel_timers(a)
end

--- STOP-2: hard, after the code that runs.
function Model:stop_now(a)
  if has_ended(a) then return end
  if a.job and not a.job.wait then
    a.stop = "now"
  else
    self:begin_stop(a)
  end
end

--- STOP-4
function Model:finish(a)
  a.phase = "stopped"
  for _, item in ipairs(a.stash) do self:lose(a, item) end
  for _, item in ipairs(a.mailbox) do self:lose(a, item) end
  a.stash, a.mailbox = {}, {}
  self:expect("actor_stopped", a)
  for _, notice in ipairs(a.watchers) do self:notify(notice) end
  for _, notice in pairs(a.watches) do notice.active = false end -- WATCH-4
  remove(a.parent.children, a)
end

--- SYS-5: draining is over. Whoever has not ended is to stop.
function Model:begin_to_end()
  if self.ending then return end
  self.ending = true
  for _, a in ipairs(self.actors) do
    if not has_ended(a) then a.stop = "now" end
  end
end

-- Restarting --------------------------------------------------------------------------------------

--- What is below goes on, and what failed there and escalated is resumed with it. What is frozen
--- for a reason of its own stays so.
function Model:release(a)
  a.frozen = false
  for _, child in ipairs(a.children) do
    if child.phase == "failed" then
      self:carry_on(child)
    elseif not child.frozen then
      self:release(child)
    end
  end
end

--- The incarnation goes on; one whose start waits has yet to start.
function Model:carry_on(a)
  self:let_go(a.failed, false)
  a.phase, a.failed, a.started = "running", nil, a.started or not a.job
  self:release(a)
end

--- LIFE-4, up to pre_restart
function Model:begin_restart(a)
  self:let_go(a.failed, false)
  a.phase, a.failed, a.killed = "pre_restart", nil, false
  give_up_wait(a)
  cancel_timers(a)
  local stash = a.stash
  a.stash = {}
  for _, item in ipairs(stash) do -- a restart is no stop: an asker waits on (ASK-7)
    self:let_go(item, false)
    if not item.slot or not item.slot.outcome then self:dead_letter(a, item, "restarted") end
  end
  self:skip_pre_restart(a)
end

--- LIFE-4, when pre_restart is over
function Model:stop_children(a)
  a.phase, a.started = "restarting", false
  if a.spec.keep_children then self:release(a) end -- LIFE-5
end

--- Where there is no pre_restart, unless a stop comes first (LIFE-6).
function Model:skip_pre_restart(a)
  if actor.skips_pre_restart(a) and self:will_begin_anew(a) then self:stop_children(a) end
end

--- SPAWN-4, BEC-1, TMR-3
function Model.begin_anew(a)
  cancel_timers(a)
  a.became, a.mark, a.frozen = {}, nil, false
end

-- Supervision -------------------------------------------------------------------------------------

-- SUP-5
local function grants_restart(a, strategy, now)
  if strategy.max_restarts == -1 then return true end
  local recent = {}
  for _, at in ipairs(a.restarts) do
    if now - at < strategy.within_ms then recent[#recent + 1] = at end
  end
  a.restarts = recent
  if #recent >= strategy.max_restarts then return false end
  recent[#recent + 1] = now
  return true
end

-- What is below is suspended; it may have taken up its pill before.
local function note_pills(a)
  for _, child in ipairs(a.children) do
    child.took_pill = child.took_pill or actor.takes_pill(child)
    note_pills(child)
  end
end

local function freeze(a, cause)
  note_pills(a)
  a.cause, a.in_hand, a.frozen = cause, nil, true
end

-- SUP-6: who shares the fate of one that fails. One that stops, or is to stop, is left alone.
local function siblings(a)
  local list = {}
  for _, child in ipairs(a.parent.children) do
    if child ~= a and not child.closed and not child.stop then list[#list + 1] = child end
  end
  return list
end

function Model:stop_for_failure(a, why, all_for_one)
  local others = all_for_one and siblings(a) or {}
  self:publish_failure(a, "stop", why)
  self:begin_stop(a)
  for _, sibling in ipairs(others) do self:stop_now(sibling) end
end

--- SUP-6: `group` is who restarts at that moment. What has not begun is new already.
function Model:restart_siblings(a)
  for _, sibling in ipairs(siblings(a)) do
    local is_failed = sibling.phase == "failed"
    if is_failed or actor.lives(sibling) then
      if not is_failed then freeze(sibling, a.cause) end
      sibling.group = a.group
      self:begin_restart(sibling)
    end
  end
end

-- SUP-4, SUP-10
function Model:escalate(a)
  local parent = a.parent
  self:publish_failure(a, "escalate", parent.is_guardian and "top-level" or nil)
  if self:stops_before_it_fails(parent, a.cause) then self:has_begun_to_stop(parent) end
  if not parent.is_guardian and actor.lives(parent) then return self:fail(parent, a.cause) end
  self:begin_stop(a)
  if parent.is_guardian and self.options.escalate_to_root then
    self:terminates(self.options.drain_timeout_ms)
  end
end

function Model:apply(a, directive, strategy)
  if directive == "resume" then
    self:publish_failure(a, "resume")
    self:carry_on(a)
  elseif directive == "escalate" then
    self:escalate(a)
  elseif directive == "stop" then
    self:stop_for_failure(a, nil, strategy.all_for_one)
  elseif grants_restart(a, strategy, self.now) then
    self:publish_failure(a, "restart")
    self:begin_restart(a)
    if strategy.all_for_one then self:restart_siblings(a) end
  else
    self:stop_for_failure(a, "restart-limit", strategy.all_for_one)
  end
end

--- A cause is a value that was raised, as `value`, with `starts` when that made a start fail
--- (LIFE-3); or `killed`, the path of who was killed. `item` is what it had in hand.
function Model:fail(a, cause, item)
  freeze(a, cause)
  a.phase, a.failed, a.in_hand, a.group = "failed", item, item and item.message, {}
  local strategy = actor.strategy_of(a)
  if a.stop then
    self:stop_for_failure(a, "stopping") -- LIFE-6
  elseif strategy.decider then
    self.deciding = a -- SUP-13: that is the next thing to be seen
  else
    self:apply(a, strategy.directive, strategy)
  end
end

local DIRECTIVES = { resume = true, restart = true, stop = true, escalate = true }

--- SUP-7
function Model:decide(a, answer, strategy)
  if DIRECTIVES[answer] then return self:apply(a, answer, strategy) end
  self:publish_hook_failure(a, "decider")
  self:stop_for_failure(a, "decider", strategy.all_for_one)
end

--- SUP-11
function Model:fail_killed(a)
  if a.killed then a.killed = false else table.remove(a.mailbox, 1) end
  self:fail(a, { killed = a.path })
end

return Model
