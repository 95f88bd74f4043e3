--- Refs: the fields that are asked for now and then. What messages pass through is in the core.
local core = require "troupe.core"
local path = require "troupe.path"

---@class troupe.Ref
---@field path troupe.Path
---@field name string
---@field tell fun(self: troupe.Ref, message: any, sender?: troupe.Ref): boolean
---@field ask fun(self: troupe.Ref, message: any, timeout_ms?: number): any, any, troupe.Ref?
---@field stop fun(self: troupe.Ref)

local methods = core.ref_methods

local fields = {
  path = function(ref) return path.of(core.ref_path(ref)) end,
  name = core.ref_name,
}

function core.ref_metatable.__index(ref, key)
  local method = methods[key]
  if method ~= nil then return method end
  local field = fields[key]
  return field and field(ref)
end

core.ref_metatable.__metatable = "troupe.ref"
