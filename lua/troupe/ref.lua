--- Refs: the fields that are asked for now and then. What messages pass through is in the core.
local core = require "troupe.core"
local path = require "troupe.path"

---@class troupe.Ref
---@field path troupe.Path
---@field name string
---@field tell fun(self: troupe.Ref, message: any, sender?: troupe.Ref): true?, troupe.Error?
---@field ask fun(self: troupe.Ref, message: any, timeout_ms?: number): any, any, troupe.Ref?
---@field gather fun(self: troupe.Ref, message: any, timeout_ms?: number): troupe.Gather, nil, nil,
---  troupe.Gather  every reply as it comes: `for routee, value, err in ref:gather(m) do` (SG-18)
---@field stop fun(self: troupe.Ref)
---@field kill fun(self: troupe.Ref)  fails it at once, through supervision (SUP-11)
---@field await_stop fun(self: troupe.Ref, timeout_ms: number): true?, troupe.Error?  (WATCH-5)

---@alias troupe.Gather fun(): troupe.Ref?, any, any  the next reply, nil when there is none; its
---  `__close` ends it

local fields = {
  path = function(ref) return path.of(core.ref_path(ref)) end,
  name = core.ref_name,
}

core.open_ref(function(ref, key)
  local field = fields[key]
  return field and field(ref)
end)

return {
  --- What an argument that must be a ref is checked by.
  ---@type troupe.Rule
  rule = { expected = "a ref", test = function(value) return core.is_ref(value), value end },
}
