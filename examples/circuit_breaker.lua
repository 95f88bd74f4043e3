--- A circuit breaker before a router.
--
--     make run FILE=examples/circuit_breaker.lua
--
-- A client looks something up every 20 ms. Between 200 and 700 ms the replicas do not answer. After
-- three lookups in vain the breaker opens, and further ones are refused at once instead of waiting
-- for a time-out. From time to time it lets one through, and closes when that is answered.

local troupe = require "troupe"

local system <close> = troupe.system("demo")

local function replica(actor, key)
  local now = actor.system:now()
  if now < 200 or now > 700 then actor:reply("the value of " .. key) end
end

local replicas = system:spawn(troupe.Router.round_robin(3, replica), "replicas")

local breaker = troupe.circuit_breaker { max_failures = 3, reset_timeout_ms = 150 }

breaker:on_change(function(from, to)
  print(("%4.0f ms: the breaker was %s and is %s"):format(system:now(), from, to))
end)

local function lookup(key)
  return breaker:call(function() return replicas:ask(key, 50) end)
end

local function client()
  local counts = { answered = 0, AskTimeoutError = 0, CircuitBreakerOpenError = 0 }
  while system:now() < 1200 do
    local value, err = lookup("user-42")
    local outcome = value and "answered" or err.name
    counts[outcome] = counts[outcome] + 1
    troupe.sleep(20)
  end
  return counts
end

local counts = system:go(client):await()
print(("%d lookups were answered, %d timed out after 50 ms, and %d were refused at once.")
  :format(counts.answered, counts.AskTimeoutError, counts.CircuitBreakerOpenError))
