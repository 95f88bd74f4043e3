--- What is seen of a system: handlers and hooks begin and end, waits are over, events come, time
--- goes on, nothing goes on any more. Each method raises when that may not happen then.
local actor = require "spec.model.actor"
local Model = require "spec.model.rules"

local must, is_held, is_stopped = Model.must, actor.is_held, actor.is_stopped

--- Raised when what is seen has two explanations, which is rare: the rest is not checked.
Model.UNDECIDED = {}

-- Same for same -----------------------------------------------------------------------------------

function Model.same_cause(one, other)
  return one.killed == other.killed and (one.starts or false) == (other.starts or false)
    and rawequal(one.value, other.value)
end

-- Messages are compared as they are, death notices by whom they are about.
local function same_message(one, other)
  if type(one) == "table" and type(other) == "table" and one.terminated then
    return one.terminated == other.terminated
  end
  return rawequal(one, other)
end

local function same_event(expected, event)
  for _, field in ipairs { "kind", "path", "directive", "why", "hook", "reason", "sender" } do
    if expected[field] ~= event[field] then return false end
  end
  if (expected.cause == nil) ~= (event.cause == nil) then return false end
  return same_message(expected.message, event.message)
    and (not event.cause or Model.same_cause(expected.cause, event.cause))
end

-- Handlers and hooks ------------------------------------------------------------------------------

-- SPAWN-4: every incarnation has a fresh table.
local function check_table(a, what)
  must(what.is_fresh == (a.mark == nil) and (what.is_fresh or a.mark == what.mark),
    "%s: the actor's table is not that of this incarnation", a.id)
  a.mark = what.mark
end

-- SUP-6: in the order they were spawned.
local function check_order(a)
  for _, sibling in ipairs(a.parent.children) do
    if sibling == a then return end
    local waits = sibling.phase == "pre_restart" and not actor.skips_pre_restart(sibling)
      and (not sibling.job or sibling.job.closing)
    must(not waits or sibling.group ~= a.group, "%s: pre_restart before that of %s", a.id,
      sibling.id)
  end
end

local begin = {}

function begin.pre_start(_, a)
  must(a.phase == "new" and not is_held(a), "%s: pre_start while %s%s", a.id, a.phase,
    is_held(a) and ", suspended" or "")
  a.phase = "starting"
end

function begin.pre_restart(self, a, what)
  must(a.phase == "pre_restart" and a.started and not a.job, "%s: pre_restart while %s", a.id,
    a.phase)
  must(not what.cause or self.same_cause(a.cause, what.cause)
    and same_message(a.in_hand, what.message), "%s: pre_restart gets something else", a.id)
  check_order(a)
  a.started = false
end

function begin.post_restart(self, a, what)
  must(actor.can_begin_anew(a), "%s: post_restart while %s, with %d children", a.id, a.phase,
    #a.children)
  must(not what.cause or self.same_cause(a.cause, what.cause),
    "%s: post_restart gets another reason", a.id)
  self.begin_anew(a)
  a.phase = "post_restart"
end

function begin.post_stop(self, a)
  must(self:has_begun_to_stop(a) and not a.job, "%s: post_stop while %s", a.id, a.phase)
  must(#a.children == 0, "%s: post_stop before its children are gone", a.id)
  must(a.started, "%s: post_stop of an incarnation that did not start, or restarts", a.id)
  a.phase = "post_stop"
end

-- A function may stand in for another hook (LIFE-4). Whether it does cannot be told where a stop
-- may have come before it (LIFE-6).
local function hook_of(a, name)
  if name == "post_stop" and a.phase == "pre_restart" then
    if is_stopped(a) then error(Model.UNDECIDED, 0) end
    return "pre_restart"
  end
  if name == "pre_start" and a.phase == "restarting" then return "post_restart" end
  return name
end

--- The function `name` of its hooks is called. `what` holds `mark` and `is_fresh` of the actor's
--- table, and `cause` and `message` where the function gets them.
function Model:begins(id, name, what)
  local a = self.actors[id]
  self:catch_up(a)
  local hook = hook_of(a, name)
  begin[hook](self, a, what)
  check_table(a, what)
  a.job = { hook = hook }
end

local function message_of(item)
  if not item.notice then return item.message end
  return item.notice.message or { terminated = item.notice.target.id }
end

--- Its handler is called. `what` holds also `message`, `sender`, and `as`: what it has become.
function Model:receives(id, what)
  local a = self.actors[id]
  self:catch_up(a)
  local item = actor.next_item(a)
  must(item and item.kind ~= "pill" and item.kind ~= "kill", "%s: gets a message while %s%s", id,
    a.phase, is_held(a) and ", suspended" or "")
  table.remove(a.mailbox, 1)
  item.message = message_of(item)
  must(same_message(item.message, what.message), "%s: gets another message than the next", id)
  must(item.slot or item.sender == what.sender, "%s: the sender is %s, not %s", id, what.sender,
    item.sender)
  local as = a.became[#a.became] or "base"
  must(what.as == as, "%s: is %s, not %s", id, what.as, as)
  check_table(a, what)
  if item.notice then self.end_notice(item.notice) end
  if item.timer then item.timer.active = false end
  a.job = { item = item }
end

local finish = {}

function finish.pre_start(self, a)
  a.phase, a.started = "running", true
  self:expect("actor_started", a)
end

function finish.pre_restart(self, a)
  if not a.stop then self:stop_children(a) end -- LIFE-6
end

function finish.post_restart(self, a)
  a.phase, a.started = "running", true
  self:expect("actor_restarted", a, { cause = a.cause })
end

function finish.post_stop(self, a) self:finish(a) end

function Model:end_hook(a, hook) finish[hook](self, a) end

--- The handler or hook returns.
function Model:ends(id)
  local a = self:running(id)
  local hook, item = a.job.hook, a.job.item
  a.job = nil
  if hook then self:end_hook(a, hook) end
  self:let_go(item, a.stop) -- ASK-7
  if a.stop and not a.killed then self:begin_stop(a) end
end

--- The handler or hook that waits is given up. `guard` holds what a to-be-closed variable of its
--- raises then.  (LIFE-9)
function Model:closes(id, guard)
  local a = self.actors[id]
  must(a.job and a.job.wait, "%s: is closed, and did not wait", id)
  self:catch_up(a)
  must(a.job.closing or self:has_begun_to_stop(a), "%s: is closed while %s", id, a.phase)
  local hook, item = a.job.hook, a.job.item
  self:settle(a.job.wait, { error = "CancelledError" }) -- nobody waits for it any more
  if guard then
    local starts = hook == "pre_start" or hook == "post_restart"
    self:publish_hook_failure(a, "close", { value = guard.value, starts = starts })
  end
  a.job = nil
  self:let_go(item, actor.has_ended(a))
  self:skip_pre_restart(a)
end

--- It raises what no act of its says.
function Model:breaks(id, err) must(false, "%s: %s", id, err) end -- luacheck: no self

-- Waits that are over -----------------------------------------------------------------------------

function Model:check_outcome(id, slot, given)
  if not slot.outcome then self:explain_outcome(slot) end
  local outcome = slot.outcome
  must(outcome, "%s: goes on, and nothing has ended its wait", id)
  must(rawequal(outcome.value, given.value) and rawequal(outcome.error, given.error)
    and outcome.from == given.from, "%s: its wait gives %s %s", id, given.value, given.error)
end

--- `given` is the outcome: `value`, or `error` (of the runtime's own its name), and `from`.
function Model:goes_on(id, given)
  local a = self.actors[id]
  must(a.job and a.job.wait, "%s: goes on, and did not wait", id)
  if not a.job.goes_on_at_once then
    self:catch_up(a)
    must(not is_held(a) and not a.killed and not a.job.closing, "%s: goes on, and must not", id)
  end
  self:check_outcome(id, a.job.wait, given)
  a.job.wait, a.job.goes_on_at_once = nil, nil
end

function Model:task_goes_on(task, given)
  local slot = self.tasks[task]
  if self.terminating and not slot.outcome and given.error == "SystemTerminatedError" then
    self:must_have_drained() -- SYS-5
  else
    self:check_outcome(task, slot, given)
  end
  self.tasks[task] = nil
end

-- Deciders and events -----------------------------------------------------------------------------

--- SUP-7, SUP-13
function Model:decides(strategy, cause)
  local killed = self.by_path[cause.killed]
  if killed and not self.deciding then self:catch_up_with_kill(killed) end
  local a = self.deciding
  must(a and actor.strategy_of(a) == strategy, "a decider is asked that is not to be")
  must(self.same_cause(a.cause, cause), "%s: its decider gets another reason", a.id)
  self.deciding = nil
  self:decide(a, strategy.decider(cause), strategy)
end

--- LIFE-7, LIFE-8, SUP-8, DL-1: in the order in which they were published.
function Model:event(event)
  if event.reason == "system-terminated" and not self.ending then self:explain_end(event) end
  local next_expected = self.expected[1]
  if not next_expected or not same_event(next_expected, event) then self:explain_event(event) end
  if event.kind ~= "dead_letter" then
    local events = self.coming[event.path]
    events.seen = (events.seen or 0) + 1
  end
  local expected = table.remove(self.expected, 1)
  must(expected and same_event(expected, event), "%s: %s is published instead of %s", event.path,
    event.kind, expected and expected.kind .. " of " .. expected.path or "nothing")
end

-- Rest and time -----------------------------------------------------------------------------------

local function check_rest(a)
  local held = is_held(a)
  must(held or not a.killed, "%s: was killed, and nothing came of it", a.id)
  if a.job then
    must(a.job.wait and not a.job.closing, "%s: waits, and was to be closed", a.id)
    must(held or not a.job.wait.outcome, "%s: its wait is over, and it does not go on", a.id)
  elseif a.phase == "running" or a.phase == "new" then
    must(held or a.phase == "running" and not actor.head(a), "%s: has not done what it could", a.id)
  elseif a.phase == "failed" then
    must(a.parent.frozen, "%s: has failed, and nothing came of it", a.id)
  else
    local keeps = a.phase ~= "stopping" and a.spec.keep_children
    must(#a.children > 0 and not keeps, "%s: is stuck while %s", a.id, a.phase)
  end
end

function Model:check_rest_of_all()
  must(#self.expected == 0, "%s was not published", self.expected[1] and self.expected[1].kind)
  for _, a in ipairs(self.actors) do
    if is_stopped(a, true) then self:has_begun_to_stop(a) end
  end
  for _, a in ipairs(self.actors) do
    if a.phase ~= "stopped" then check_rest(a) end
  end
  if self.ending and #self.user.children == 0 then self.tasks = {} end -- SYS-5
  for task, slot in pairs(self.tasks) do must(not slot.outcome, "%s does not go on", task) end
end

-- Nothing can happen while time stands still.
local function come_to_rest(self)
  if self.terminating and self:has_drained() then self:begin_to_end() end
  self:check_rest_of_all()
end

--- Time goes on at rest only, from deadline to deadline.
function Model:time(now)
  must(now >= self.now, "time goes back")
  while self.deadlines[1] and self.deadlines[1].due <= now do
    local deadline = table.remove(self.deadlines, 1)
    if deadline.due > self.now then come_to_rest(self) end
    self.now = deadline.due
    deadline.pass()
  end
  if now > self.now then come_to_rest(self) end
  self.now = now
end

--- Nothing goes on; so many actors live, and so many handlers, hooks and tasks wait.
function Model:rest(actors, parked)
  come_to_rest(self)
  local living, waiting = 0, 0
  for _, a in ipairs(self.actors) do
    if a.phase ~= "stopped" then living = living + 1 end
    if a.job then waiting = waiting + 1 end
  end
  for _ in pairs(self.tasks) do waiting = waiting + 1 end
  must(actors == living and parked == waiting, "%d actors, %d parked instead of %d, %d", actors,
    parked, living, waiting)
end

--- The system has terminated: these are its counters, and its log has so many records.
function Model:is_over(stats, records)
  self:rest(stats.actors, stats.parked)
  for _, name in ipairs { "queued", "asks", "timers", "tasks", "anchored", "events_lost" } do
    must(stats[name] == 0, "%s is %d in the end", name, stats[name])
  end
  for level, count in pairs(self.records) do
    must(records[level] == count, "%s records of level %s instead of %d", records[level], level,
      count)
  end
end

return Model
