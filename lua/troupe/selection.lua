--- Selections: actors by their path.  (SEL-1, SEL-2, SEL-3)
local check = require "troupe.check"
local core = require "troupe.core"
local pattern = require "troupe.pattern"
local refs = require "troupe.ref"

---@class troupe.Selection
---@field private system troupe.System
---@field private path string                "/user/a", perhaps with wildcards
---@field private elements (string | fun(name: string): boolean)[]?  of a path with wildcards
local Selection = { __name = "troupe.Selection" }
Selection.__index = Selection

function Selection:__tostring() return "troupe://" .. self.system.name .. self.path end

local function children(parent, element)
  if type(element) == "string" then return { core.child(parent, element) } end
  local list = {}
  for _, child in ipairs(core.children(parent)) do
    if element(core.ref_name(child)) then list[#list + 1] = child end
  end
  return list
end

--- The live actors there now, in the order they were spawned; a list of one or none, where the path
--- has no wildcards.  (SEL-3)
---@return troupe.Ref[]
function Selection:resolve()
  if not self.elements then return { core.lookup(self.system, self.path) } end
  local found = { core.lookup(self.system, "/") }
  for _, element in ipairs(self.elements) do
    local below = {}
    for _, parent in ipairs(found) do
      for _, child in ipairs(children(parent, element)) do below[#below + 1] = child end
    end
    found = below
  end
  return found
end

local timeout_rule = check.duration { default = 1000 }

--- The actor there, waiting for one to be spawned if need be.
---@param timeout_ms? number  default 1000
---@return troupe.Ref? ref
---@return troupe.Error? err  TimeoutError, SystemTerminatedError
---@raise OptionsError at the caller's line, also when the path has wildcards
function Selection:resolve_one(timeout_ms)
  if self.elements then
    check.fail("resolve_one", ("%s may select many: use resolve()"):format(self), 2)
  end
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

--- Tells whoever is there; to nobody it is a dead letter with reason "unresolved".
---@param message any
---@param sender? troupe.Ref
---@return true?
---@return troupe.Error? err  of the first that refused it (MBX-3)
---@raise OptionsError at the caller's line
function Selection:tell(message, sender)
  if sender ~= nil then check_sender(self, sender, 2) end
  local found = self:resolve()
  if #found == 0 then
    core.dead_letter(self.system, tostring(self), message, "unresolved", sender)
    return true
  end
  local refusal
  for _, ref in ipairs(found) do
    local _, err = ref:tell(message, sender)
    refusal = refusal or err
  end
  if refusal then return nil, refusal end
  return true
end

local selection = {}

---@param system troupe.System
---@param path any   text, or a path
---@return troupe.Selection
---@raise OptionsError two levels up
function selection.new(system, path)
  local short = pattern.read("actor_selection", path, system.name, 3)
  local elements = pattern.is_wild(short) and pattern.elements(short) or nil
  return setmetatable({ system = system, path = short, elements = elements }, Selection)
end

return selection
