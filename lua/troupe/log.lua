--- The log of a system: levels, loggers of actors, and one way to a sink.  (LOG-1, LOG-2)
local check = require "troupe.check"
local sinks = require "troupe.sink"
local text = require "troupe.text"

local log = {}

---@alias troupe.LogLevel "debug" | "info" | "warn" | "error"

---@class troupe.LogRecord
---@field time number              seconds since the epoch, of the system's clock
---@field level troupe.LogLevel
---@field path string              the text of the path that the record is about
---@field message string
---@field fields table             a fresh table; empty when there are none

local RANK = { debug = 1, info = 2, warn = 3, error = 4, off = 5 }

local callable = check.func()
local record_level = check.one_of { "debug", "info", "warn", "error" }
local any_level = check.one_of { "debug", "info", "warn", "error", "off" }

--- The rules for the options of a log, for whoever takes them on its behalf.
log.rules = {
  level = check.one_of { "debug", "info", "warn", "error", "off", default = "info" },
  sink = {
    expected = '"text", "json" or a function',
    default = "text",
    test = function(value)
      return value == "text" or value == "json" or callable.test(value), value
    end,
  },
}

-- Whether a value can be the fields of a record. An error value, a ref or a path cannot: who
-- writes `log:warn("no luck", err)` wants the error in the message.
local function is_fields(value)
  return type(value) == "table" and getmetatable(value) == nil
end

local function count_specifiers(format)
  local _, count = format:gsub("%%%%", ""):gsub("%%", "")
  return count
end

-- The message and the fields of a call; the rules are at Logger:info.
local function render(format, ...)
  local given = table.pack(...)
  local used = type(format) == "string" and count_specifiers(format) or 0
  local formatted, message = pcall(string.format, format, ...)
  local parts = { formatted and message or text.of(format) }
  local fields = given[used + 1]
  local has_fields = fields == nil or is_fields(fields)
  for i = formatted and used + 1 or 1, given.n do
    if not (has_fields and i == used + 1) then parts[#parts + 1] = text.of(given[i]) end
  end
  return table.concat(parts, " "), has_fields and fields or nil
end

local function to_stderr(write_record)
  return function(record) io.stderr:write(write_record(record)) end
end

local writers = { text = to_stderr(sinks.text), json = to_stderr(sinks.json) }

---@class troupe.Logger
---@field log troupe.Log
---@field path string  the text of the path that its records carry
---@field debug fun(self: troupe.Logger, format: any, ...: any)  as `info`, at another level
---@field info fun(self: troupe.Logger, format: any, ...: any)   see below
---@field warn fun(self: troupe.Logger, format: any, ...: any)   as `info`, at another level
---@field error fun(self: troupe.Logger, format: any, ...: any)  as `info`, at another level
local Logger = { __name = "troupe.Logger" }
Logger.__index = Logger

---@class troupe.Log : troupe.Logger  also a logger of its own, for what is about the system
---@field private clock fun(): number
---@field private sink fun(record: troupe.LogRecord)
---@field private threshold integer
---@field private sink_failed boolean
local Log = { __name = "troupe.Log" }
Log.__index = Log

--- Logger:debug, info, warn and error: formats and logs, when the level is on.  (LOG-2)
---
---     actor.log:info("worked on %s", job, { attempt = 2 })
---
--- The format takes as many arguments as it has specifiers ("%%" is none). If the argument after
--- those is a table without a metatable, it is the fields of the record; what else is left over is
--- appended to the message. Nothing here raises: when the format does not fit its arguments, the
--- message is the format with all of them appended; a format that is no string is shown as
--- `tostring` does. Nothing is formatted when the level is off.
for _, level in ipairs { "debug", "info", "warn", "error" } do
  Logger[level] = function(self, format, ...)
    local own_log = self.log
    if RANK[level] < own_log.threshold then return end
    own_log:write(level, self.path, render(format, ...))
  end
  Log[level] = Logger[level]
end

--- A logger for one path.  (LOG-2)
---@param path string  the text of the path
---@return troupe.Logger
function Log:logger(path)
  return setmetatable({ log = self, path = path }, Logger)
end

--- Logs from this level on; "off" logs nothing.  (LOG-1)
---@param level troupe.LogLevel | "off"
---@raise OptionsError at the caller's line
function Log:set_level(level)
  self.threshold = RANK[check.argument("log:set_level", "level", level, any_level, 2)]
end

--- Whether a record of this level would be written.  (LOG-2)
---@param level troupe.LogLevel
---@return boolean
---@raise OptionsError at the caller's line
function Log:enabled(level)
  check.argument("log:enabled", "level", level, record_level, 2)
  return RANK[level] >= self.threshold
end

local function report_failed_sink(path, reason)
  local line = ("troupe: the log sink of %s failed, and is not reported again: %s\n"):format(
    text.escape(path), text.escape(text.of(reason)))
  return pcall(function() io.stderr:write(line) end)
end

--- Writes one record, if its level is on. A sink that raises is reported once, on stderr.  (LOG-1)
---@param level troupe.LogLevel
---@param path any       the path that it is about, or its text
---@param message any    a string, or what `tostring` makes one
---@param fields? table  copied
---@raise OptionsError at the caller's line, for a level that does not exist
function Log:write(level, path, message, fields)
  check.argument("log:write", "level", level, record_level, 2)
  if RANK[level] < self.threshold then return end
  local copy = {}
  for key, value in next, fields or {} do copy[key] = value end
  local ok, reason = pcall(self.sink, {
    time = self.clock(),
    level = level,
    path = text.of(path),
    message = text.of(message),
    fields = copy,
  })
  if not ok and not self.sink_failed then
    self.sink_failed = report_failed_sink(self.path, reason)
  end
end

--- The log of a system.  (LOG-1)
---@param path string            the text of the system's path, for what is about the system itself
---@param clock fun(): number    the time of day, in seconds since the epoch
---@param options? { level: troupe.LogLevel | "off" | nil, sink: "text" | "json" | function | nil }
---  level: default "info"; sink: "text" (default) and "json" are lines on stderr, a function gets
---  each record
---@return troupe.Log
---@raise OptionsError at the caller's line
function log.new(path, clock, options)
  local values = check.options("log.new", options, log.rules, 2)
  local self = {
    path = path,
    clock = clock,
    sink = writers[values.sink] or values.sink,
    threshold = RANK[values.level],
    sink_failed = false,
  }
  self.log = self
  return setmetatable(self, Log)
end

return log
