--- What can be said of an actor of the model, which is a record:
---
---   phase     new, starting, running, failed, pre_restart, restarting, post_restart, stopping,
---             post_stop, stopped
---   job       the handler or hook that runs or waits: `hook`, or `item`, the mail in hand; `wait`,
---             what it waits for; `closing` when that is to be given up
---   stop      a stop that was asked for while its code ran: "after" that, or "now"
---   killed    it is to fail (SUP-11)
---   closed    it takes no more mail
---   frozen    it has failed, and what is below it is suspended (SUP-3)
---   started   its pre_start has ended, and it has not said goodbye (LIFE-4)
---   mailbox, stash   lists of items, whose `kind` is mail, pill, kill, notice or tick
local actor = {}

---@return table
function actor.new(id, path, parent, spec, name)
  return {
    id = id, path = path, parent = parent, spec = spec, name = name, children = {},
    phase = "new", closed = false, killed = false, frozen = false, started = false,
    mailbox = {}, stash = {}, became = {}, timers = {}, watches = {}, watchers = {}, restarts = {},
  }
end

function actor.has_ended(a)
  return a.phase == "stopping" or a.phase == "post_stop" or a.phase == "stopped"
end

function actor.is_restarting(a)
  return a.phase == "pre_restart" or a.phase == "restarting" or a.phase == "post_restart"
end

--- Whether it can fail for the sake of somebody else: once it lives, and until it is over.
function actor.lives(a)
  return a.phase == "starting" or a.phase == "running" or a.phase == "post_restart"
end

--- SUP-3: it has failed and nothing has come of it yet, or something above it has. A restart or a
--- stop that has begun goes on all the same.
function actor.is_held(a)
  if actor.has_ended(a) or actor.is_restarting(a) then return false end
  if a.phase == "failed" then return true end
  local above = a.parent
  while above do
    if above.frozen then return true end
    above = above.parent
  end
  return false
end

function actor.has_hook(a, name, other)
  return a.spec.hooks[name] ~= nil or a.spec.hooks[other] ~= nil
end

--- Its own strategy, its parent's, or the default.  (SPAWN-5, SUP-1)
function actor.strategy_of(a)
  return a.spec.strategy or a.parent.spec.children_strategy
    or { directive = "restart", max_restarts = 10, within_ms = 60000 }
end

function actor.child_named(a, name)
  for _, child in ipairs(a.children) do
    if child.name == name then return child end
  end
end

-- Mail --------------------------------------------------------------------------------------------

-- WATCH-2, TMR-2: notices and ticks that were taken back do not count.
local function counts(item)
  if item.notice then return item.notice.active end
  if item.timer then return item.timer.active end
  return true
end

--- The first of its mail.
function actor.head(a)
  while a.mailbox[1] and not counts(a.mailbox[1]) do table.remove(a.mailbox, 1) end
  return a.mailbox[1]
end

--- The first of its mail, if it may take that up.
function actor.next_item(a)
  local is_open = a.phase == "running" and not a.job and not a.stop and not a.killed
    and not actor.is_held(a)
  return is_open and actor.head(a) or nil
end

local function is_next(a, kind)
  local item = actor.next_item(a)
  return item ~= nil and item.kind == kind
end

-- Ends --------------------------------------------------------------------------------------------

--- SUP-11: ahead of its mail, and without waiting for a handler that waits, once it has begun to
--- start; the message in its turn.
function actor.is_to_be_killed(a)
  if a.killed then return not actor.is_held(a) and (a.job ~= nil or a.phase == "running") end
  return is_next(a, "kill")
end

function actor.takes_pill(a) return is_next(a, "pill") end

--- A stop that was asked for while its code ran. There may be a kill, too: either may come first.
function actor.takes_stop(a)
  return a.stop ~= nil and (not a.job or a.job.wait ~= nil and a.stop == "now")
end

--- LIFE-4: it has no pre_restart, nor post_stop to stand in for it.
function actor.skips_pre_restart(a)
  local is_due = a.started and actor.has_hook(a, "pre_restart", "post_stop")
  return a.phase == "pre_restart" and not a.job and not is_due
end

--- LIFE-4: it restarts, and its children are to stop.
function actor.stops_children_to_restart(a)
  return not a.spec.keep_children and (a.phase == "restarting" or actor.skips_pre_restart(a))
end

function actor.can_begin_anew(a)
  return a.phase == "restarting" and not a.job and (a.spec.keep_children or #a.children == 0)
end

--- Whether it was stopped, by its mail or from above, and may have begun to stop, unseen; `surely`
--- when all is at rest, where it must have.  (STOP-3)
function actor.is_stopped(a, surely)
  if a.is_guardian then return false end
  if a.phase == "stopping" or actor.takes_pill(a) or actor.takes_stop(a) then return true end
  return a.took_pill and not surely or actor.stops_children_to_restart(a.parent)
    or not a.parent.job and actor.is_stopped(a.parent, surely)
end

return actor
