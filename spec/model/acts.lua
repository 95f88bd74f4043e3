--- What is done: by the code of an actor, which runs then, or from outside. Who does it comes first
--- where that matters. What may raise, or gives whether it worked, is told with how that went.
local actor = require "spec.model.actor"
local Model = require "spec.model.rules"

local must, has_ended = Model.must, actor.has_ended

function Model:actor(id) return id == 0 and self.user or self.actors[id] end

function Model:running(id)
  local a = self.actors[id]
  must(a.job and not a.job.wait, "%s: acts, and no code of its runs", id)
  return a
end

-- SPAWN-6, PATH-5
function Model:can_spawn(parent, name)
  return not self.terminating and not has_ended(parent) and parent.phase ~= "restarting"
    and not parent.stop and not (name and actor.child_named(parent, name))
end

--- `path` is false when it raised.
function Model:spawns(parent_id, id, spec, name, path)
  local parent = self:actor(parent_id)
  must(self:can_spawn(parent, name) == (path ~= false), "%s: spawning %s", parent_id,
    path and "went well" or "raised")
  if not path then return end
  local a = actor.new(id, path, parent, spec, name)
  self.actors[id], self.by_path[path] = a, a
  parent.children[#parent.children + 1] = a
end

function Model:counts_children(id, ids)
  local children = {}
  for i, child in ipairs(self.actors[id].children) do children[i] = child.id end
  must(table.concat(children, " ") == table.concat(ids, " "), "%s: its children are %s, not %s", id,
    table.concat(ids, " "), table.concat(children, " "))
end

function Model:tells(id, message, sender)
  self:deliver(self:actor(id), { kind = "mail", message = message, sender = sender })
end

function Model:tells_pill(id) self:deliver(self:actor(id), { kind = "pill" }) end

function Model:tells_kill(id) self:deliver(self:actor(id), { kind = "kill" }) end

--- SUP-11; one whose restart has begun, but not its new incarnation, has failed already.
function Model:kills(id)
  local a = self:actor(id)
  if has_ended(a) or a.phase == "pre_restart" or a.phase == "restarting" then return end
  if actor.is_stopped(a) and not self:will_be_killed(a) then return end
  a.killed = true
end

--- `value` is what it raises.
function Model:raises(id, value)
  local a = self:running(id)
  local hook, item = a.job.hook, a.job.item
  a.job = nil
  if hook == "post_stop" or hook == "pre_restart" then -- LIFE-7
    self:publish_hook_failure(a, hook, { value = value })
    self:end_hook(a, hook)
    if a.stop then self:begin_stop(a) end
  else
    self:fail(a, { value = value, starts = hook ~= nil }, item)
  end
end

-- Stops -------------------------------------------------------------------------------------------

--- STOP-1, LIFE-6
function Model:stops(id)
  local a = self:actor(id)
  if a.closed then return end
  if actor.is_restarting(a) then
    self:stop_now(a)
  else
    self:deliver(a, { kind = "pill" })
  end
end

function Model:stops_hard(id) self:stop_now(self:actor(id)) end

--- STOP-2
function Model:stops_itself(id)
  local a = self:running(id)
  if not has_ended(a) then a.stop = a.stop or "after" end
end

--- STOP-5
function Model:has_stopped(id, in_time)
  must((self.actors[id].phase == "stopped") == in_time, "%s: has stopped in time: %s", id, in_time)
end

--- SYS-5
function Model:terminates(drain_ms)
  if self.terminating then return end
  self.terminating = true
  if drain_ms == 0 then return self:begin_to_end() end
  self:at(self.now + drain_ms, function() self:begin_to_end() end)
end

-- Death watch -------------------------------------------------------------------------------------

--- WATCH-1, WATCH-3; `message` nil for a Terminated.
function Model:watches(id, target_id, message)
  local a, target = self:running(id), self:actor(target_id)
  if has_ended(a) then return end
  local notice = a.watches[target]
  if not notice then
    notice = { watcher = a, target = target, active = true }
    a.watches[target] = notice
    self:watch(notice, target)
  end
  notice.message = message
end

function Model:unwatches(id, target_id)
  local notice = self:running(id).watches[self:actor(target_id)]
  if notice then self.end_notice(notice) end
end

-- Stash, become, timers ---------------------------------------------------------------------------

--- STASH-1
function Model:stashes(id, done)
  local a = self:running(id)
  local item = a.job.item
  local can = item ~= nil and not a.job.stashed and #a.stash < a.spec.stash_capacity
  must(can == done, "%s: stashing %s", id, done and "went well" or "raised")
  if not done then return end
  a.job.stashed = true
  a.stash[#a.stash + 1] =
    { kind = "mail", message = item.message, sender = item.sender, slot = item.slot }
  if item.slot then item.slot.requests = item.slot.requests + 1 end
end

function Model:unstashes(id)
  local a = self:running(id)
  table.move(a.mailbox, 1, #a.mailbox, #a.stash + 1)
  table.move(a.stash, 1, #a.stash, 1, a.mailbox)
  a.stash = {}
end

--- BEC-1
function Model:becomes(id, name, push)
  local became = self:running(id).became
  became[push and #became + 1 or math.max(#became, 1)] = name
end

function Model:unbecomes(id)
  local became = self:running(id).became
  became[#became] = nil
end

--- TMR-1
function Model:starts_timer(id, key, message, ms)
  local a = self:running(id)
  if a.timers[key] then a.timers[key].active = false end
  a.timers[key] = nil
  if has_ended(a) then return end
  local timer = { active = true }
  a.timers[key] = timer
  self:at(self.now + ms, function()
    if not timer.active then return end
    a.mailbox[#a.mailbox + 1] = { kind = "tick", message = message, timer = timer }
  end)
end

--- TMR-2
function Model:cancels_timer(id, key, prevented)
  local a = self:running(id)
  local timer = a.timers[key]
  a.timers[key] = nil
  must(prevented == (timer ~= nil and timer.active), "%s: cancelling gives %s", id, prevented)
  if timer then timer.active = false end
end

-- Asking and answering ----------------------------------------------------------------------------

--- It looks at `actor.sender`, and keeps that if it is a reply ref.  (TELL-4)
function Model:looks(id, sender)
  local item = self:running(id).job.item
  local slot = item and item.slot
  local expected = slot and "reply ref" or item and item.sender
  must(sender == expected, "%s: the sender is %s, not %s", id, sender, expected)
  if not slot then return end
  slot.shown = true
  self.kept[#self.kept + 1] = slot
end

--- It tells something to the reply ref that was kept as the n-th.  (ASK-10)
function Model:answers(id, number, value)
  self:settle(self.kept[number], { value = value, from = id })
end

--- ASK-5; `how` is "value" or "error".
function Model:replies(id, how, value, done)
  local item = self:running(id).job.item
  local slot, sender = item and item.slot, item and item.sender
  must(done == (slot ~= nil or sender ~= nil), "%s: replying gives %s", id, done)
  if slot then
    slot.shown = true
    self:settle(slot, { [how] = value, from = id })
  elseif sender then
    self:tells(sender, value, id)
  end
end

function Model:ask(target_id, message, ms)
  local slot = self:new_slot(ms, { error = "AskTimeoutError" }) -- ASK-6
  slot.target = self:actor(target_id)
  self:deliver(slot.target, { kind = "mail", message = message, slot = slot })
  return slot
end

-- Waits -------------------------------------------------------------------------------------------

function Model:waits(id, slot)
  local a = self:running(id)
  a.job.wait = slot
  if a.stop == "now" and not a.killed then self:begin_stop(a) end
end

function Model:sleeps(id, ms) self:waits(id, self:new_slot(ms, {})) end

function Model:asks(id, target_id, message, ms) self:waits(id, self:ask(target_id, message, ms)) end

function Model:task_asks(task, target_id, message, ms)
  self.tasks[task] = self:ask(target_id, message, ms)
end

--- WATCH-5; it does not wait for one that has stopped.
function Model:awaits_stop(id, target_id, ms)
  local slot = self:new_slot(ms, { error = "TimeoutError" })
  self:watch({ slot = slot }, self:actor(target_id))
  if not slot.outcome then return self:waits(id, slot) end
  local job = self:running(id).job
  job.wait, job.goes_on_at_once = slot, true
end

return Model
