--- Spawning, for systems and actors alike.  (SPAWN-1 .. SPAWN-6, PATH-3 .. PATH-5)
local check = require "troupe.check"
local core = require "troupe.core"
local group = require "troupe.group"
local path = require "troupe.path"
local recipe = require "troupe.recipe"

local reasons = {
  exists = "the name %s is taken: %s/%s is still alive",
  stopped = "%s is stopping and cannot spawn",
  terminated = "the system is terminating and cannot spawn",
}

local function check_name(name, parent, level)
  local ok, reason = path.check_name(name)
  if ok then return end
  local shown = type(name) == "string" and path.quote(name) or check.show(name)
  check.fail("spawn", ("the name %s below %s %s"):format(shown, core.ref_path(parent), reason),
    level + 1)
end

local function refuse(why, parent, name, level)
  local at = core.ref_path(parent)
  if why == "exists" then
    check.fail("spawn", reasons.exists:format(path.quote(name), at, name), level + 1)
  end
  check.fail("spawn", (reasons[why] or why):format(at), level + 1)
end

local function check_groups(made, parent, level)
  local why = group.refusal(made, core.ref_system(parent))
  if why then check.fail("spawn", why, level + 1) end
end

--- Spawns below `parent`; for `system:spawn` and `actor:spawn`, whose caller the errors name. A
--- bare function without a name or options is spawned by the core, and does not come here.
---@param parent troupe.Ref
---@param behavior troupe.Behavior
---@param name? string
---@param options? troupe.SpawnOptions
---@return troupe.Ref
---@raise OptionsError
local function spawn(parent, behavior, name, options)
  if name ~= nil then check_name(name, parent, 3) end
  local ref, why
  if options == nil and type(behavior) == "function" then
    ref, why = core.spawn(parent, name, behavior)
  else
    local made = recipe.of("spawn", behavior, options, 3)
    if made.routing then check_groups(made, parent, 3) end
    ref, why = core.spawn(parent, name, made.receive, made)
  end
  if not ref then refuse(why, parent, name, 3) end
  return ref
end

core.system_methods.spawn, core.actor_methods.spawn = core.spawn_methods(spawn)

return spawn
