--- What becomes of the engine's events: they are published to whoever subscribed, and logged.
--- (LIFE-7, LIFE-8, SUP-8, DL-1, DL-2)
local core = require "troupe.core"
local dead_letters = require "troupe.dead_letters"
local text = require "troupe.text"

local reports = {}

local LINES, WINDOW_S = 10, 10

-- A reason in a log line is cut there; subscribers get it whole (SUP-9).
local MAX_REASON = 4096

local function in_short(reason)
  local kept, mark = text.cut(text.of(reason), MAX_REASON)
  return kept .. mark
end

-- Dead letters may come by the thousand: ten lines in ten seconds, then one with the count (DL-2).
local function new_limiter(log, later)
  local limiter = { since = -math.huge, lines = 0, held_back = 0 }

  function limiter.flush()
    if limiter.held_back == 0 then return end
    log:write("info", log.path, ("%d more dead letters"):format(limiter.held_back))
    limiter.held_back = 0
  end

  function limiter.admit(now)
    local elapsed = now - limiter.since
    if elapsed >= WINDOW_S or elapsed < 0 then -- less than 0: the clock has been set back
      limiter.flush()
      limiter.since, limiter.lines = now, 0
    end
    limiter.lines = limiter.lines + 1
    if limiter.lines <= LINES then return true end
    if limiter.held_back == 0 then later(limiter.since + WINDOW_S - now, limiter.flush) end
    limiter.held_back = limiter.held_back + 1
    return false
  end

  return limiter
end

local why_stopped = {
  ["restart-limit"] = "its restarts are used up",
  decider = "its decider failed",
  stopping = "it was stopping",
  ["top-level"] = "it escalated past the top",
}

local function failed(log, event)
  local gentle = event.directive == "resume" or event.directive == "restart"
  local level = gentle and "warn" or "error"
  if not log:enabled(level) then return end
  local reason = in_short(event.reason)
  local message = ("failed: %s; directive: %s"):format(reason, event.directive)
  if event.why then message = ("%s (%s)"):format(message, why_stopped[event.why] or event.why) end
  log:write(level, event.ref, message, {
    directive = event.directive,
    reason = reason,
    traceback = event.traceback,
  })
end

local function hook_failed(log, event)
  log:write("error", event.ref or log.path, ("%s raised: %s"):format(event.hook,
    in_short(event.reason)), { reason = in_short(event.reason), traceback = event.traceback })
end

local function slow_handler(log, event)
  log:write("warn", event.ref or log.path, ("has run for %d ms without a wait"):format(event.ms),
    { ms = event.ms, traceback = event.traceback })
end

local warnings = {
  ["deep-mailbox"] = "%d messages wait in its mailbox",
  ["no-reply-target"] = "dropped a message: a scatter needs somebody to answer; ask the router, or "
    .. "tell it with a sender",
  ["respawn-limit"] = "respawned 10 routees within a minute: this one stays away",
  ["resize-failed"] = "the pool could not grow: out of memory",
  ["respawn-failed"] = "a routee could not be respawned: out of memory",
}

local function warning(log, event)
  log:write("warn", event.ref, (warnings[event.code] or event.code):format(event.depth))
end

local function dead_letter(log, event, limiter)
  if not log:enabled("info") or not limiter.admit(log.clock()) then return end
  log:write("info", event.recipient, "dead letter: " .. in_short(event.message), {
    reason = event.reason,
    sender = event.sender and tostring(event.sender),
  })
end

local loggers = {
  actor_failed = failed,
  hook_failed = hook_failed,
  slow_handler = slow_handler,
  warning = warning,
  dead_letter = dead_letter,
}

-- The fields of each kind of event, from what the engine tells: subject, value, code, sender,
-- traceback, directive.
local fields_of = {
  actor_started = function(ref) return { ref = ref } end,
  actor_restarted = function(ref, reason) return { ref = ref, reason = reason } end,
  actor_stopped = function(ref) return { ref = ref } end,
  actor_failed = function(ref, reason, why, _, traceback, directive)
    return { ref = ref, reason = reason, why = why, traceback = traceback, directive = directive }
  end,
  hook_failed = function(ref, reason, hook, _, traceback)
    return { ref = ref, reason = reason, hook = hook, traceback = traceback }
  end,
  slow_handler = function(ref, ms, _, _, traceback) -- this one is told by the binding
    return { ref = ref, ms = ms, traceback = traceback }
  end,
  dead_letter = function(ref, message, reason, sender, path)
    local recipient = ref and core.ref_path(ref) or path
    return { recipient = recipient, message = message, reason = reason, sender = sender }
  end,
  message_dropped = function(ref, message, policy, sender)
    return { ref = ref, message = message, policy = policy, sender = sender }
  end,
  warning = function(ref, depth, code) return { ref = ref, code = code, depth = depth } end,
}

--- The function that the core hands each event of a system to.
---@param log troupe.Log
---@param stream troupe.Events
---@param later fun(seconds: number, fn: function)  runs a function later, if the system goes on
---@param kept troupe.DeadLetters?  where dead letters are kept
---@return fun(kind: string, ...) dispatch
---@return fun() flush  says what was held back
function reports.dispatcher(log, stream, later, kept)
  local limiter = new_limiter(log, later)

  local function dispatch(kind, ...)
    local event = fields_of[kind](...)
    if loggers[kind] then loggers[kind](log, event, limiter) end
    if kind == "actor_stopped" then stream:remove(event.ref) end
    if kept and kind == "dead_letter" then
      dead_letters.keep(kept, event, log.clock(), function() stream:publish(kind, event) end)
    else
      stream:publish(kind, event)
    end
  end

  return dispatch, limiter.flush
end

--- A task that nobody awaits has raised.  (ASK-11)
---@param log troupe.Log
---@param what string       "a task", "a coroutine"
---@param reason any
---@param traceback string?
function reports.unawaited(log, what, reason, traceback)
  log:write("error", log.path, ("%s failed: %s"):format(what, in_short(reason)),
    { reason = in_short(reason), traceback = traceback })
end

return reports
