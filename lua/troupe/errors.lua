--- Error values: tables with a name and a message.  (ERR-1, ERR-2)
local text = require "troupe.text"

local errors = {}

---@class troupe.Error
---@field name string     which error, "AskTimeoutError" for one
---@field message string  what went wrong, for people
---@field [string] any    what the error carries beside them

-- The name and the message belong to the user, who may have put anything there. No metamethod is
-- called, so that an error that holds itself can be shown.
local function part(value)
  if type(value) == "string" then return value end
  return text.show(value)
end

--- The metatable of every error value; the C core compares it.
errors.Error = {
  __name = "troupe.Error",
  __tostring = function(self)
    return part(rawget(self, "name")) .. ": " .. part(rawget(self, "message"))
  end,
}

local function build(name, message, fields)
  local value = {}
  for key, field in next, fields or {} do value[key] = field end
  value.name = name
  value.message = message
  return setmetatable(value, errors.Error)
end

--- Raises an OptionsError for wrong use, its message led by a position as `error` does it.  (ERR-2)
---@param message string
---@param level integer  as in `error`: 1 is the line that called this, 2 that function's caller
---@raise OptionsError
function errors.misuse(message, level)
  local at = debug.getinfo(level + 1, "Sl")
  if at and at.currentline > 0 then
    message = ("%s:%d: %s"):format(at.short_src, at.currentline, message)
  end
  error(build("OptionsError", message), 0)
end

--- A new error value. It raises nothing: return it, reply with it, or give it to `error`.  (ERR-1)
---@param name string     not empty; which error it is
---@param message string  what went wrong
---@param fields? table   copied into the value; must not hold "name" or "message"
---@return troupe.Error
---@raise OptionsError at the caller's line
function errors.new(name, message, fields)
  if type(name) ~= "string" or name == "" then
    errors.misuse("error: name must be a non-empty string (got " .. text.show(name) .. ")", 2)
  end
  if type(message) ~= "string" then
    errors.misuse("error: message must be a string (got " .. text.show(message) .. ")", 2)
  end
  if fields ~= nil and type(fields) ~= "table" then
    errors.misuse("error: fields must be a table (got " .. text.show(fields) .. ")", 2)
  end
  for _, taken in ipairs { "name", "message" } do
    if fields and rawget(fields, taken) ~= nil then
      errors.misuse(("error: fields must not hold %q"):format(taken), 2)
    end
  end
  return build(name, message, fields)
end

--- Whether a value is an error value, and of that name when one is given.  (ERR-1)
---@param value any
---@param name? string  default: any name
---@return boolean
function errors.is(value, name)
  if getmetatable(value) ~= errors.Error then return false end
  return name == nil or value.name == name
end

return errors
