--- The members of a group: actors that exist, by ref or by path.  (RTR-17)
local check = require "troupe.check"
local core = require "troupe.core"
local pattern = require "troupe.pattern"

local group = {}

---@alias troupe.Member troupe.Ref | troupe.Path | string

local MAX_SIZE = 1000000

local function is_list(value)
  local length = 0
  for _ in next, value do length = length + 1 end
  for i = 1, length do
    if rawget(value, i) == nil then return false end
  end
  return length > 0 and length <= MAX_SIZE
end

local list_rule = {
  expected = "a list of refs and paths, one at least",
  test = function(value) return type(value) == "table" and is_list(value), value end,
}

-- A ref, or a path without its system; and the name of the system, where the path tells it.
local function read_member(value)
  if core.is_ref(value) then return core.is_actor(value) and value, core.ref_system(value).name end
  local short, system_name = pattern.split(value)
  if short and not pattern.is_wild(short) then return short, system_name end
end

local member_rule = {
  expected = 'the ref of an actor or its path, such as "/user/a"',
  test = function(value)
    local member = read_member(value)
    return member ~= nil and member ~= false, value
  end,
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
  check.argument(where, "routees", routees, list_rule, level + 1)
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

-- The first member that is not of a system, or nil.
local function stranger(made, system)
  if made.system_name and made.system_name ~= system.name then return made.members[1] end
  for _, member in ipairs(made.members) do
    if core.is_ref(member) and core.ref_system(member) ~= system then return member end
  end
end

--- Why a system cannot spawn from a recipe: a group in it has members of another system. Nil when
--- it can.
---@param made table
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
