--- The members of a group: actors that exist, by ref or by path.  (RTR-17)
local check = require "troupe.check"
local core = require "troupe.core"
local path = require "troupe.path"
local pattern = require "troupe.pattern"

local group = {}

---@alias troupe.Member troupe.Ref | troupe.Path | string

local MAX_SIZE = 1000000

-- What was given in place of a list of members, or nil.
local function flaw(value)
  if type(value) ~= "table" then return check.show(value) end
  local length = 0
  for _ in next, value do length = length + 1 end
  if length == 0 then return "an empty one" end
  if length > MAX_SIZE then return ("%d of them"):format(length) end
  for i = 1, length do
    if rawget(value, i) == nil then return "a table with holes or other keys" end
  end
end

-- Whether an actor other than a guardian may be there: somewhere below /user or /system. Names that
-- begin with "$" are those of actors that were given none.
local function may_exist(short)
  local top, rest = short:match("^/+([^/]+)/+([^/].*)$")
  if top ~= "user" and top ~= "system" then return false end
  for name in rest:gmatch("[^/]+") do
    if not name:find("^%$%d+$") and not path.check_name(name) then return false end
  end
  return true
end

-- A ref, or a path without its system; and the name of the system, where that is known. Nil for
-- what can be no member.
local function read_member(value)
  local is_ref = core.is_ref(value)
  if is_ref and not core.is_actor(value) then return nil end
  local short, system_name = pattern.split(is_ref and core.ref_path(value) or value)
  if not short or not may_exist(short) then return nil end
  return is_ref and value or short, system_name
end

local member_rule = {
  expected = 'the ref of an actor or its path, such as "/user/a", and no guardian',
  test = function(value) return read_member(value) ~= nil, value end,
}

--- Checks the members of a group and gives them as the core reads them: refs, and paths without
--- their system.
---@param where string    the function, as the user calls it
---@param routees any
---@param level integer   as in `check.argument`
---@return (troupe.Ref | string)[] members
---@return string? system_name  the one they are all of, as far as they tell
---@raise OptionsError
function group.read(where, routees, level)
  local got = flaw(routees)
  if got then
    local message = "routees must be a list of refs and paths, from 1 to %d of them (got %s)"
    check.fail(where, message:format(MAX_SIZE, got), level + 1)
  end
  local members, system_name = {}, nil
  for i = 1, #routees do
    local given = rawget(routees, i)
    check.argument(where, ("routees[%d]"):format(i), given, member_rule, level + 1)
    local member, name = read_member(given)
    members[i] = member
    if system_name and name and name ~= system_name then
      local message = "routees[%d] must be of the system %q, as those before it (got %s)"
      check.fail(where, message:format(i, system_name, given), level + 1)
    end
    system_name = system_name or name
  end
  return members, system_name
end

---@param made troupe.Recipe
---@param system troupe.System
---@return (troupe.Ref | string)?  the first member that is not of the system
local function stranger(made, system)
  if made.system_name and made.system_name ~= system.name then return made.members[1] end
  for _, member in ipairs(made.members) do
    if core.is_ref(member) and core.ref_system(member) ~= system then return member end
  end
end

--- Why a system cannot spawn from a recipe: a group in it has members of another system. Nil when
--- it can.
---@param made troupe.Recipe?
---@param system troupe.System
---@return string?
function group.refusal(made, system)
  while made do
    local member = made.members and stranger(made, system)
    if member then
      return ("a group must have members of the system %q alone (got %s)"):format(system.name,
        core.is_ref(member) and member or "troupe://" .. made.system_name .. member)
    end
    made = made.routee
  end
end

return group
