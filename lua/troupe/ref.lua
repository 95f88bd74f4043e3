--- Refs: the fields that are asked for now and then. What messages pass through is in the core.
local core = require "troupe.core"
local path = require "troupe.path"

---@class troupe.Ref  an actor, or who waits for a reply; its methods raise OptionsErrors at the
---  caller's line
---@field path troupe.Path
---@field name string
---@field tell fun(self: troupe.Ref, message: any, sender?: troupe.Ref): true?, troupe.Error?
---  queues the message (TELL-1)
---@field ask fun(self: troupe.Ref, message: any, timeout_ms?: number): any, any, troupe.Ref?  waits
---  for the reply, 5000 ms by default; gives it, nil and who replied, or nil and an error (ASK-1,
---  ASK-9)
---@field gather fun(self: troupe.Ref, message: any, timeout_ms?: number): troupe.Gather, nil, nil,
---  troupe.Gather  every reply as it comes: `for routee, value, err in ref:gather(m) do`; 5000 ms
---  by default for all of them (SG-18)
---@field stop fun(self: troupe.Ref)  after the mail it has (STOP-1)
---@field kill fun(self: troupe.Ref)  fails it at once, through supervision (SUP-11)
---@field await_stop fun(self: troupe.Ref, timeout_ms: number): true?, troupe.Error?  (WATCH-5)

---@alias troupe.Gather fun(): troupe.Ref?, any, any  waits for the next reply: who, and what, or
---  nil and the failure; nil when there are no more; nil, nil and an error when it could not wait
---  on. Its `__close` ends it

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
