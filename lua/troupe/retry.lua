--- Calling again what has failed.  (PAT-1)
local check = require "troupe.check"
local core = require "troupe.core"

---@class troupe.RetryOptions
---@field attempts? integer     calls at most, the first one included; default 3
---@field delay_ms? number      before the second call; default 500, 0: at once
---@field factor? number        by which the delay grows from call to call, at least 1; default 1
---@field max_delay_ms? number  the delay grows no further; default: it does

local schema = {
  attempts = check.integer { min = 1, default = 3 },
  delay_ms = check.duration { zero = true, default = 500 },
  factor = check.number { min = 1, default = 1 },
  max_delay_ms = check.duration { default = 2 ^ 53 },
}

local function_rule = check.func()

--- Calls a function, in a handler or a task, until it neither raises nor gives nil and an error.
---
--- The last attempt is a plain call: what it gives or raises is what `retry` gives or raises.
---@param fn fun(attempt: integer): ...  may wait; attempts are counted from 1
---@param options? troupe.RetryOptions
---@return any ...  what the function returned; nil and an error when the wait between two attempts
---  was cut short: CancelledError, SystemTerminatedError
---@raise OptionsError at the caller's line; whatever the last attempt raises
return function(fn, options)
  check.argument("retry", "fn", fn, function_rule, 2)
  local values = check.options("retry", options, schema, 2)
  if not core.running_system() then
    check.fail("retry", "to be called in a handler or a task", 2)
  end
  local delay = values.delay_ms
  for attempt = 1, values.attempts - 1 do
    local result = table.pack(pcall(fn, attempt))
    local ok, value, err = result[1], result[2], result[3]
    if ok and not (value == nil and err) then return table.unpack(result, 2, result.n) end
    delay = math.min(delay, values.max_delay_ms)
    local _, cut_short = core.sleep(delay)
    if cut_short then return nil, cut_short end
    delay = delay * values.factor
  end
  return fn(values.attempts)
end
