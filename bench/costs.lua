--- What the features of a message cost, as an arm of instructions.lua: ping-pong of an integer
--- between two actors, each with one thing more than the workload ping-pong has.
local arm = require "bench.arm"
local troupe = require "troupe"

--- Ping-pong. `tell(peer, left, actor)` tells the next message, of which `left_of` makes the number
--- that it stands for.
local function ping_pong(tell, spawn_options, left_of)
  return function(n, system)
    local handled = 0
    local function player()
      local peer
      return system:spawn(function(actor, message)
        handled = handled + 1
        local left = left_of and left_of(message) or message
        if left > 1 then tell(peer, left - 1, actor) end
      end, nil, spawn_options), function(other) peer = other end
    end
    local first, meet_second = player()
    local second, meet_first = player()
    meet_second(second)
    meet_first(first)
    return function()
      tell(first, n)
      system:run()
    end, function() return handled end
  end
end

local function tell(peer, left) peer:tell(left) end

local function tell_with_sender(peer, left, actor) peer:tell(left, actor and actor.ref) end

local function tell_closure(peer, left) peer:tell(function() return left end) end

local function call(message) return message() end

local function sleep_and_tell(peer, left, actor)
  if actor then troupe.sleep(1) end
  peer:tell(left)
end

--- `ref.tell` is looked up once.
local function with_kept_tell(n, system)
  local tell_ref = system:spawn(function() end).tell
  return ping_pong(function(peer, left) tell_ref(peer, left) end)(n, system)
end

--- One asks another, in its handler.
local function ask(n, system)
  local answered = 0
  local server = system:spawn(function(actor, question) actor:reply(question) end)
  local asker = system:spawn(function(actor, left)
    if server:ask(left) == left then answered = answered + 1 end
    if left > 1 then actor.ref:tell(left - 1) end
  end)
  return function()
    asker:tell(n)
    system:run()
  end, function() return answered end
end

local system_options = {
  metrics = { log_level = "off", metrics = true },
  ["no-watchdog"] = { log_level = "off", slow_handler_ms = 0 },
}

local function row(...) return arm.workload(1, ping_pong(...)) end

arm.main({
  ["nothing"] = row(tell),
  ["tell-in-a-local"] = arm.workload(1, with_kept_tell),
  ["with-a-sender"] = row(tell_with_sender),
  ["fresh-closure"] = row(tell_closure, nil, call),
  ["bounded"] = row(tell, { mailbox = { capacity = 1000 } }),
  ["priority-mailbox"] = row(tell, { mailbox = { priority = function(left) return left end } }),
  ["metrics"] = row(tell),
  ["no-watchdog"] = row(tell),
  ["sleep"] = row(sleep_and_tell),
  ["ask-in-a-handler"] = arm.workload(1, ask),
}, function() return troupe.system("bench", system_options[arg[1]] or { log_level = "off" }) end)
