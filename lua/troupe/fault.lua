--- The error values of the failures that the engine reports.  (ASK-6, ASK-7, SG-5)
local errors = require "troupe.errors"
local text = require "troupe.text"

local fault = {}

-- 250.0 is 250, for whoever reads it.
local function plain(ms)
  return math.tointeger(ms) or ms
end

local function duration(ms)
  return ("%.14gms"):format(ms)
end

-- A routee may fail with nil, but a list with a hole in it has no length.
local function gathered(members, count)
  local list = {}
  for i = 1, count do
    local member = members[i]
    if member == nil then member = errors.new("Error", "the routee failed with nil") end
    list[i] = member
  end
  return list
end

---@alias troupe.FaultBuilder fun(path: string, ms: number, members: any[], count: integer,
---  asked: integer, replied: integer, needed: integer): troupe.Error

---@type table<string, troupe.FaultBuilder>
local builders = {
  ["ask-timeout"] = function(path, ms)
    return errors.new("AskTimeoutError", ("no reply from %s within %s"):format(path, duration(ms)),
      { path = path, timeout_ms = plain(ms) })
  end,

  ["timeout"] = function(_, ms)
    return errors.new("TimeoutError", "no result within " .. duration(ms),
      { timeout_ms = plain(ms) })
  end,

  ["actor-stopped"] = function(path)
    return errors.new("ActorStoppedError", ("%s has stopped"):format(path), { path = path })
  end,

  ["system-terminated"] = function(path)
    return errors.new("SystemTerminatedError", "the system has terminated", { path = path })
  end,

  ["no-routees"] = function(path)
    return errors.new("NoRouteesError", ("%s has no routees left"):format(path), { path = path })
  end,

  ["cancelled"] = function(path)
    return errors.new("CancelledError", "the wait was cancelled", { path = path })
  end,

  ["out-of-memory"] = function()
    return errors.new("OutOfMemoryError", "not enough memory")
  end,

  ["killed"] = function(path)
    return errors.new("ActorKilledError", ("%s was killed"):format(path), { path = path })
  end,

  ["mailbox-full"] = function(path)
    return errors.new("MailboxFullError", ("the mailbox of %s is full"):format(path),
      { path = path })
  end,

  ["strategy-error"] = function(path, _, members)
    return errors.new("StrategyError", ("%s: the routing strategy failed"):format(path),
      { path = path, cause = members[1] })
  end,

  ["hash-key-error"] = function(path, _, members)
    return errors.new("StrategyError", ("%s: the hash_key failed"):format(path),
      { path = path, cause = members[1] })
  end,

  ["too-many-routees"] = function(path)
    return errors.new("ResizeError", ("%s: a pool has at most 1000000 routees"):format(path),
      { path = path })
  end,

  ["not-a-pool"] = function(path)
    local message = "%s: a group owns no routees, so it adds and removes none"
    return errors.new("ResizeError", message:format(path), { path = path })
  end,

  ["scatter-timeout"] = function(path, ms, members, count)
    local message = "%s: none of %d routees replied within %s"
    return errors.new("AggregateError", message:format(path, count, duration(ms)),
      { path = path, timeout_ms = plain(ms), errors = gathered(members, count) })
  end,

  ["scatter-failed"] = function(path, _, members, count)
    return errors.new("AggregateError", ("%s: all %d routees failed"):format(path, count),
      { path = path, errors = gathered(members, count) })
  end,

  ["scatter-late"] = function(path, ms, members, count, asked, replied, needed)
    local message = "%s: only %d of %d routees replied within %s, and %d were needed"
    return errors.new("AggregateError",
      message:format(path, replied, asked, duration(ms), needed),
      { path = path, timeout_ms = plain(ms), errors = gathered(members, count) })
  end,

  ["scatter-short"] = function(path, _, members, count, asked, _, needed)
    local message = count == 0 and "%s: only %d routees are left, and %d replies were needed"
      or "%s: %d of %d routees failed, and %d replies were needed"
    message = count == 0 and message:format(path, asked, needed)
      or message:format(path, count, asked, needed)
    return errors.new("AggregateError", message, { path = path, errors = gathered(members, count) })
  end,

  ["scatter-empty"] = function(path)
    return errors.new("AggregateError", ("%s: no routees left to scatter to"):format(path),
      { path = path, errors = {} })
  end,

  ["scatter-deep"] = function(path)
    local message = "%s: scatters are nested more than 100 deep"
    return errors.new("AggregateError", message:format(path), { path = path, errors = {} })
  end,

  ["scatter-stopped"] = function(path)
    local message = "%s: stopped while the scatter was still open"
    return errors.new("AggregateError", message:format(path), { path = path, errors = {} })
  end,
}

--- Builds the error value of a failure.  (ASK-6, ASK-7, SG-5)
---
--- Every value carries `path`, but that of "timeout", and `timeout_ms` where there was a budget.
--- `errors` of an AggregateError is a list without holes: what each routee gave, in scatter order.
---@param code string       which failure: a key of the table above; another one raises
---@param path? string      the text of the path that it is about
---@param ms? number        the budget in milliseconds, for the three that time out
---@param members? any[]    what each routee gave, or what the strategy raised; may have holes
---@param count? integer    how many members there are
---@param asked? integer    of a gather: how many routees were asked, how many replied, how many
---@param replied? integer  replies were needed
---@param needed? integer
---@return troupe.Error
function fault.build(code, path, ms, members, count, asked, replied, needed)
  local builder = builders[code]
  if not builder then error(("no such failure: %s"):format(code), 2) end
  return builder(path, ms, members, count, asked, replied, needed)
end

--- The reason of a failed start.  (LIFE-3)
---@param cause any    what the hook raised
---@param path string  the text of the actor's path
---@return troupe.Error
function fault.initialization(cause, path)
  local message = ("%s could not start: %s"):format(path, text.of(cause))
  return errors.new("ActorInitializationError", message, { path = path, cause = cause })
end

return fault
