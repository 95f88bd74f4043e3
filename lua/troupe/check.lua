--- Checks of arguments and options, so that all their errors read alike.  (SPAWN-3, ERR-2)
---
--- An error is one line: where, what was wrong, what was expected, what was given.
---
---     spawn: throughput must be an integer of at least 1 (got 0)
---     spawn: unknown option "capcity" (known: mailbox, throughput)
---
--- `level` counts as in `error`, and its default is 2: the caller of the function that called the
--- check, which is the user's line when a public function checks. A function between them adds 1.
--- A check in tail position (`return check.options(...)`) loses a level; put its result in a local.
local errors = require "troupe.errors"
local text = require "troupe.text"

local check = {}

---@class troupe.Rule  what an argument or option must be; modules may write their own
---@field expected string   completes "must be ..."
---@field test fun(value: any): boolean, any  whether it is fine, and the value to use; not for nil
---@field default any       used for nil
---@field required boolean? an option that must be given; default false
---@field schema table<string, troupe.Rule>?  for options within an option

---@class troupe.RuleOptions
---@field default any
---@field required boolean?

---@class troupe.NumberOptions : troupe.RuleOptions
---@field min number?        the least value that is fine
---@field max number?        the greatest
---@field positive boolean?  refuse 0 and less; default false

--- What was given, in a few words.  (SPAWN-3)
---
--- As `text.show`, and error values by their name and message.
---@param value any
---@return string
function check.show(value)
  if errors.is(value) then return text.quote(text.of(value)) end
  return text.show(value)
end

--- Raises for wrong use that no rule covers.  (ERR-2)
---@param where string     the function, as the user calls it
---@param message string   what was wrong
---@param level? integer   default 2
---@raise OptionsError
function check.fail(where, message, level)
  errors.misuse(where .. ": " .. message, (level or 2) + 1)
end

local function refuse(where, name, rule, value, level)
  local message = "%s must be %s (got %s)"
  check.fail(where, message:format(name, rule.expected, check.show(value)), level + 1)
end

--- Checks one argument. Nil becomes the rule's default, and raises when it has none.  (ERR-2)
---@param where string    the function, as the user calls it
---@param name string     the argument's name
---@param value any
---@param rule troupe.Rule
---@param level? integer  default 2
---@return any checked
---@raise OptionsError
function check.argument(where, name, value, rule, level)
  if value == nil and rule.default ~= nil then return rule.default end
  if value ~= nil then
    local ok, checked = rule.test(value)
    if ok then return checked end
  end
  refuse(where, name, rule, value, (level or 2) + 1)
end

local function known_names(prefix, schema)
  local names = {}
  for name in next, schema do names[#names + 1] = prefix .. name end
  if #names == 0 then return "none" end
  table.sort(names)
  return table.concat(names, ", ")
end

local function refuse_unknown(where, prefix, key, schema, level)
  local shown = check.show(type(key) == "string" and prefix .. key or key)
  local message = "unknown option %s (known: %s)"
  check.fail(where, message:format(shown, known_names(prefix, schema)), level + 1)
end

local function read(where, prefix, options, schema, level)
  for key in next, options do
    if schema[key] == nil then refuse_unknown(where, prefix, key, schema, level + 1) end
  end
  local values = {}
  for name, rule in next, schema do
    local value = rawget(options, name)
    if value == nil and not rule.required then
      values[name] = rule.default
    else
      local checked = check.argument(where, prefix .. name, value, rule, level + 1)
      if rule.schema then
        checked = read(where, prefix .. name .. ".", checked, rule.schema, level + 1)
      end
      values[name] = checked
    end
  end
  return values
end

--- Reads a table of options into a fresh one, with defaults, so that later changes change nothing.
--- (SPAWN-3)
---@param where string    the function, as the user calls it
---@param options any     what the user gave; nil is no options
---@param schema table<string, troupe.Rule>
---@param level? integer  default 2
---@return table values
---@raise OptionsError for an unknown option, and for one of the wrong type or range
function check.options(where, options, schema, level)
  level = (level or 2) + 1
  if options == nil then options = {} end
  if type(options) ~= "table" then
    check.fail(where, "options must be a table (got " .. check.show(options) .. ")", level)
  end
  local values = read(where, "", options, schema, level) -- no tail call: see above
  return values
end

local function rule(expected, options, test)
  options = options or {}
  return {
    expected = expected,
    test = test,
    default = options.default,
    required = options.required,
  }
end

local function range(min, max)
  if min and max then return (" from %s to %s"):format(min, max) end
  if min then return (" of at least %s"):format(min) end
  if max then return (" of at most %s"):format(max) end
  return ""
end

local function within(value, min, max)
  return (not min or value >= min) and (not max or value <= max)
end

local function is_finite(value)
  return type(value) == "number" and value == value and value ~= math.huge and value ~= -math.huge
end

--- An integer; a float with an integral value is taken and converted.
---@param options? { min: integer?, max: integer?, default: integer?, required: boolean? }
---@return troupe.Rule
function check.integer(options)
  local min, max = options and options.min, options and options.max
  return rule("an integer" .. range(min, max), options, function(value)
    local integer = math.type(value) and math.tointeger(value)
    return integer ~= nil and within(integer, min, max), integer
  end)
end

--- A finite number; `positive` refuses 0 and less.
---@param options? troupe.NumberOptions
---@return troupe.Rule
function check.number(options)
  options = options or {}
  local min, max, positive = options.min, options.max, options.positive
  local expected = (positive and "a positive finite number" or "a finite number") .. range(min, max)
  return rule(expected, options, function(value)
    return is_finite(value) and within(value, min, max) and (not positive or value > 0), value
  end)
end

--- A time span in milliseconds: any positive finite number, and 0 where `zero` says so.
---@param options? { zero: boolean?, default: number?, required: boolean? }
---@return troupe.Rule
function check.duration(options)
  options = options or {}
  return check.number {
    min = options.zero and 0 or nil,
    positive = not options.zero,
    default = options.default,
    required = options.required,
  }
end

--- true or false.
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.boolean(options)
  return rule("a boolean", options, function(value) return type(value) == "boolean", value end)
end

--- A string that is not empty.
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.string(options)
  return rule("a non-empty string", options, function(value)
    return type(value) == "string" and value ~= "", value
  end)
end

--- One of the strings in the list part: `check.one_of { "a", "b", default = "a" }`.
---@param options { [integer]: string, default: string?, required: boolean? }
---@return troupe.Rule
function check.one_of(options)
  local allowed, quoted = {}, {}
  for i, value in ipairs(options) do
    allowed[value] = true
    quoted[i] = text.quote(value)
  end
  return rule("one of " .. table.concat(quoted, ", "), options, function(value)
    return allowed[value] == true, value
  end)
end

--- A function, or a value that can be called like one.
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.func(options)
  return rule("a function", options, function(value)
    if type(value) == "function" then return true, value end
    local meta = getmetatable(value)
    return type(meta) == "table" and rawget(meta, "__call") ~= nil, value
  end)
end

--- A table, handed on as it is.
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.table(options)
  return rule("a table", options, function(value) return type(value) == "table", value end)
end

--- Options within an option: `mailbox = check.record { capacity = check.integer { min = 1 } }`.
---
--- Read into a fresh table; its errors name them as `mailbox.capacity`. Nil stays nil.
---@param schema table<string, troupe.Rule>
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.record(schema, options)
  local record = check.table(options)
  record.schema = schema
  return record
end

--- Any value but nil.
---@param options? troupe.RuleOptions
---@return troupe.Rule
function check.any(options)
  return rule("a value", options, function(value) return true, value end)
end

return check
