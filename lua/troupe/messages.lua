--- Messages with a meaning for the runtime.
local check = require "troupe.check"

local messages = {}

---@class troupe.Message  one of the runtime's own, of which there is one only

---@class troupe.Terminated
---@field actor troupe.Ref  who has stopped

-- What makes a message one of a kind is its metatable, so that `messages.is` knows it by that, and
-- `troupe.core` does.
messages.Signal = {
  __name = "troupe.Signal",
  __tostring = function(self) return "troupe." .. self.name end,
}

--- The kind of a death notice, which a watcher gets: a table with `actor`, who has stopped.
--- (WATCH-1, WATCH-6)
---@type table
messages.Terminated = {
  __name = "troupe.Terminated",
  __tostring = function(self) return ("troupe.Terminated (%s)"):format(self.actor) end,
}

--- What an actor is told when it has had no user mail for as long as it asked for.  (TMR-7)
---@type troupe.Message
messages.ReceiveTimeout = setmetatable({}, {
  __name = "troupe.ReceiveTimeout",
  __tostring = function() return "troupe.ReceiveTimeout" end,
})

---@param ref troupe.Ref
---@return troupe.Terminated
function messages.terminated(ref) return setmetatable({ actor = ref }, messages.Terminated) end

--- Whether a message is of a kind of the runtime's own: `troupe.is(message, troupe.Terminated)`.
---@param value any
---@param kind any
---@return boolean
function messages.is(value, kind)
  return kind ~= nil and (rawequal(value, kind) or rawequal(debug.getmetatable(value), kind))
end

---@class troupe.Broadcast
---@field payload any

--- Tells a router to send `payload` to every routee, unwrapped; it uses up no turn of the strategy.
--- To an actor that is no router it is a message like any other, of this kind.  (RTR-5)
---@type fun(payload: any): troupe.Broadcast
messages.Broadcast = setmetatable({ __name = "troupe.Broadcast" }, {
  __call = function(kind, payload) return setmetatable({ payload = payload }, kind) end,
})

local function signal(code, name)
  return setmetatable({ code, name = name }, messages.Signal)
end

--- Stops the actor when it has handled the mail before it.  (STOP-1)
---@type troupe.Message
messages.PoisonPill = signal(0, "PoisonPill")

--- Fails the actor in its turn.  (SUP-11)
---@type troupe.Message
messages.Kill = signal(1, "Kill")

local by_code = { [0] = messages.PoisonPill, [1] = messages.Kill }

--- The signal with that code of the engine's.
---@param code integer
---@return troupe.Message
function messages.signal(code) return by_code[code] end

--- Asks a router for the list of its routees.  (RTR-15)
---@type troupe.Message
messages.GetRoutees = setmetatable({ 0 }, {
  __name = "troupe.GetRoutees",
  __tostring = function() return "troupe.GetRoutees" end,
})

local count_rule = check.integer { min = 1, max = 1000000 }

local function resizing(name, sign)
  local kind = { __name = "troupe." .. name }

  function kind.__tostring(self) return ("troupe.%s(%d)"):format(name, self.n) end

  function kind.of(n) return setmetatable({ sign * n, n = n }, kind) end

  return setmetatable(kind, {
    __call = function(_, n)
      local checked = check.argument(name, "n", n, count_rule, 2)
      return kind.of(checked)
    end,
  })
end

--- Has a pool spawn `n` more routees; an asker gets the new size. The message has the field `n`.
--- (RTR-15)
---@type fun(n: integer): { n: integer }
---@raise OptionsError at the caller's line
messages.AddRoutees = resizing("AddRoutees", 1)

--- Has a pool remove the `n` routees with the highest numbers, or all there are; they handle the
--- mail that they have. An asker gets the new size. The message has the field `n`.  (RTR-15)
---@type fun(n: integer): { n: integer }
---@raise OptionsError at the caller's line
messages.RemoveRoutees = resizing("RemoveRoutees", -1)

--- The message of these with that number of the engine's.
---@param number integer
---@return table
function messages.pool_request(number)
  if number == 0 then return messages.GetRoutees end
  if number > 0 then return messages.AddRoutees.of(number) end
  return messages.RemoveRoutees.of(-number)
end

return messages
