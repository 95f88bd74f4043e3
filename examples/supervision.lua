--- Supervision: actors that fail, and go on.
--
--     make run FILE=examples/supervision.lua
--
-- An adder gets something that is no number. It is restarted, which costs it its sum and that one
-- message. Then a fetcher needs a server that is not up yet. Its backoff supervisor starts it
-- again, later each time, while a question that it is asked waits. Lines that begin with a level
-- come from the log.

local troupe = require "troupe"

local system <close> = troupe.system("demo", {
  log = function(record)
    print(("%-5s %s: %s"):format(record.level, record.path, record.message))
  end,
})

local adder = system:spawn(function(actor, number)
  actor.sum = (actor.sum or 0) + number
  print(("%s: the sum is %d"):format(actor.name, actor.sum))
end, "adder")

for _, number in ipairs { 1, 2, "three", 4, 5 } do adder:tell(number) end
system:run() -- until nothing is left to do

local server_is_up_at = system:now() + 500

local fetcher = {
  pre_start = function(actor)
    if actor.system:now() < server_is_up_at then error("connection refused", 0) end
    print("fetcher: connected")
  end,
  receive = function(actor, page) actor:reply("what is on " .. page) end,
}

local supervisor = system:spawn(troupe.backoff_supervisor {
  child = fetcher, min_backoff_ms = 50, max_backoff_ms = 1000,
}, "fetcher")

print((supervisor:ask("page 1")))
