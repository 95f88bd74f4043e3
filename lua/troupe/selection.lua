--- Selections: actors by their path.  (SEL-1, SEL-2)
local check = require "troupe.check"
local core = require "troupe.core"
local events = require "troupe.events"
local refs = require "troupe.ref"
local systems = require "troupe.systems"

---@class troupe.Selection
local Selection = { __name = "troupe.Selection" }
Selection.__index = Selection

function Selection:__tostring() return "troupe://" .. self.system.name .. self.path end

local timeout_rule = check.duration { default = 1000 }

--- The actor there, waiting for one to be spawned if need be.
---@param timeout_ms? number  default 1000
---@return troupe.Ref? ref
---@return troupe.Error? err  TimeoutError, SystemTerminatedError
---@raise OptionsError at the caller's line
function Selection:resolve_one(timeout_ms)
  local timeout = check.argument("resolve_one", "timeout_ms", timeout_ms, timeout_rule, 2)
  return core.resolve(self.system, self.path, timeout)
end

local function check_sender(self, sender, level)
  check.argument("tell", "the sender", sender, refs.rule, level + 1)
  if core.ref_system(sender) ~= self.system then
    local message = "the sender must be of the selection's system (got %s)"
    check.fail("tell", message:format(sender), level + 1)
  end
end

--- Tells the actor there; to nobody it is a dead letter with reason "unresolved".
---@param message any
---@param sender? troupe.Ref
---@return boolean
---@raise OptionsError at the caller's line
function Selection:tell(message, sender)
  if sender ~= nil then check_sender(self, sender, 2) end
  local ref = core.lookup(self.system, self.path)
  if ref then return ref:tell(message, sender) end
  if getmetatable(message) == events.DeadLetter then return true end -- DL-3
  systems.state(self.system).report("dead_letter", {
    recipient = tostring(self), message = message, reason = "unresolved", sender = sender,
  })
  return true
end

local selection = {}

local path_rule = {
  expected = 'a path such as "/user/a" or "troupe://<system>/user/a"',
  test = function(value)
    return type(value) == "string" and (value:find("^/") or value:find("^troupe://[^/]+/")) ~= nil,
      value
  end,
}

---@param system troupe.System
---@param path any   text, or a path
---@return troupe.Selection
---@raise OptionsError two levels up
function selection.new(system, path)
  local text = getmetatable(path) and tostring(path) or path
  text = check.argument("actor_selection", "path", text, path_rule, 3)
  local name, rest = text:match("^troupe://([^/]+)(/.*)$")
  if name and name ~= system.name then
    check.fail("actor_selection",
      ("the path must be of the system %q (got %q)"):format(system.name, name), 3)
  end
  return setmetatable({ system = system, path = rest or text }, Selection)
end

return selection
