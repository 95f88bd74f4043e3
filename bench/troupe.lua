--- Troupe as an arm. What each workload is stands in README.md.
local arm = require "bench.arm"
local troupe = require "troupe"

local Router = troupe.Router

local HOW_MANY = "how many?"

-- Telling -----------------------------------------------------------------------------------------

local function ping_pong(n, system)
  local handled = 0
  local function player()
    local peer
    return function(_, left)
      handled = handled + 1
      if left > 1 then peer:tell(left - 1) end
    end, function(other) peer = other end
  end
  local ping, meet_pong = player()
  local pong, meet_ping = player()
  local first, second = system:spawn(ping), system:spawn(pong)
  meet_pong(second)
  meet_ping(first)
  return function()
    first:tell(n)
    system:run()
  end, function() return handled end
end

local function ping_pong_table(n, system)
  local handled = 0
  local function player()
    local peer
    return function(_, ball)
      handled = handled + 1
      if ball.left > 1 then peer:tell { left = ball.left - 1 } end
    end, function(other) peer = other end
  end
  local ping, meet_pong = player()
  local pong, meet_ping = player()
  local first, second = system:spawn(ping), system:spawn(pong)
  meet_pong(second)
  meet_ping(first)
  return function()
    first:tell { left = n }
    system:run()
  end, function() return handled end
end

--- An actor that counts what it is told, and a function that gives the count.
local function counter(system)
  local handled = 0
  return system:spawn(function(actor, message)
    if message == HOW_MANY then
      actor:reply(handled)
    else
      handled = handled + 1
    end
  end), function() return handled end
end

local function tell(batch)
  return function(n, system)
    local receiver, handled = counter(system)
    return function()
      for told = batch, n, batch do
        for i = 1, batch do receiver:tell(i) end
        assert(receiver:ask(HOW_MANY) == told)
      end
    end, handled
  end
end

local PRODUCERS = 10

local function fan_in(n, system)
  local consumer, handled = counter(system)
  local producers = {}
  for i = 1, PRODUCERS do
    producers[i] = system:spawn(function(_, share)
      for _ = 1, share // 1000 do
        for message = 1, 1000 do consumer:tell(message) end
        assert(consumer:ask(HOW_MANY))
      end
    end)
  end
  return function()
    for _, producer in ipairs(producers) do producer:tell(n // PRODUCERS) end
    system:run()
  end, handled
end

local RING = 1000

local function ring(n, system)
  local handled, members = 0, {}
  for i = 1, RING do
    members[i] = system:spawn(function(_, left)
      handled = handled + 1
      if left > 1 then members[i % RING + 1]:tell(left - 1) end
    end)
  end
  return function()
    members[1]:tell(n)
    system:run()
  end, function() return handled end
end

local WORKERS, BATCH = 8, 1000

local function round_robin(n, system)
  local handled, producer = 0, nil
  local pool = system:spawn(Router.round_robin(WORKERS, {
    pre_start = function(actor) actor.done = 0 end,
    receive = function(actor)
      handled = handled + 1
      actor.done = actor.done + 1
      if actor.done % (BATCH // WORKERS) == 0 then producer:tell "done" end
    end,
  }))
  local batches, waiting = n // BATCH, 0
  producer = system:spawn(function(_, message)
    if message == "done" then waiting = waiting - 1 end
    if waiting > 0 or batches == 0 then return end
    batches, waiting = batches - 1, WORKERS
    for i = 1, BATCH do pool:tell(i) end
  end)
  return function()
    producer:tell "begin"
    system:run()
  end, function() return handled end
end

local function deep(n, system)
  local receiver, handled = counter(system)
  return function()
    for i = 1, n do receiver:tell(i) end
    system:run()
  end, handled
end

local function priority(n, system)
  local handled = 0
  local receiver = system:spawn(function() handled = handled + 1 end, "receiver", {
    mailbox = { priority = function(message) return message % 3 end },
  })
  return function()
    for _ = 1, n // BATCH do
      for i = 1, BATCH do receiver:tell(i) end
      system:run()
    end
  end, function() return handled end
end

-- Asking ------------------------------------------------------------------------------------------

--- `callers` tasks share n questions, and each asks one after another. Counted is what was answered
--- as it should be.
local function ask_of(serve, callers)
  return function(n, system)
    local answered = 0
    local server = serve(system, function(actor, question) actor:reply(question) end)
    local function caller()
      for question = 1, n // callers do
        if server:ask(question) == question then answered = answered + 1 end
      end
    end
    return function()
      for _ = 1, callers do system:go(caller) end
      system:run()
    end, function() return answered end
  end
end

local function one(system, receive) return system:spawn(receive) end

local function three(system, receive)
  return system:spawn(Router.scatter_gather_first_completed(3, receive, { timeout_ms = 250 }))
end

local function ask_text(bytes)
  return function(n, system)
    local answered, text = 0, ("x"):rep(bytes)
    local server = system:spawn(function(actor, question) actor:reply(#question) end)
    return function()
      system:go(function()
        for _ = 1, n do
          if server:ask(text) == bytes then answered = answered + 1 end
        end
      end)
      system:run()
    end, function() return answered end
  end
end

local BUSY_PAIRS = 500

--- Actors that play until the function that is given is called.
local function keep_busy(system, pairs_of_players)
  local playing = true
  local function player()
    local peer
    return system:spawn(function(_, count)
      if playing then peer:tell(count + 1) end
    end), function(other) peer = other end
  end
  for _ = 1, pairs_of_players do
    local ping, meet_pong = player()
    local pong, meet_ping = player()
    meet_pong(pong)
    meet_ping(ping)
    ping:tell(0)
  end
  return function() playing = false end
end

local function latency(n, system)
  local handled, times = 0, {}
  local server = system:spawn(function(actor, question)
    handled = handled + 1
    actor:reply(question)
  end)
  local stop_playing = keep_busy(system, BUSY_PAIRS)
  local asker = system:spawn(function()
    for i = 1, n do
      local began = arm.clock()
      assert(server:ask(i) == i)
      times[i] = (arm.clock() - began) * 1e6
    end
    stop_playing()
  end)
  local function at(fraction) return times[math.ceil(n * fraction)] end
  return function()
    asker:tell "begin"
    system:run()
    table.sort(times)
    return { p50 = at(0.5), p99 = at(0.99), p999 = at(0.999) }
  end, function() return handled end
end

-- Actors that come and go -------------------------------------------------------------------------

local function expect_none_left(system, before)
  local left = system:stats().actors - before
  if left ~= 0 then error(("%d actors are left"):format(left), 0) end
end

local function spawn(n, system)
  local handled, before = 0, system:stats().actors
  local function receive() handled = handled + 1 end
  return function()
    for _ = 1, n // 100 do
      for i = 1, 100 do
        local actor = system:spawn(receive)
        actor:tell(i)
        actor:stop()
      end
      system:run()
      expect_none_left(system, before)
    end
  end, function() return handled end
end

local function lives(n, system)
  local handled, before = 0, system:stats().actors
  local function receive() handled = handled + 1 end
  return function()
    local actors = {}
    for i = 1, n do actors[i] = system:spawn(receive) end
    system:run()
    for i = 1, n do actors[i]:tell(i) end
    system:run()
    for i = 1, n do actors[i]:stop() end
    system:run()
    expect_none_left(system, before)
  end, function() return handled end
end

local function idle(n, system)
  local handled, before = 0, system:stats().actors
  local function receive() handled = handled + 1 end
  local function rate(from, to) return n / (to - from) end
  return function()
    local resident, began = arm.resident(), arm.clock()
    local actors = {}
    for i = 1, n do actors[i] = system:spawn(receive) end
    system:run()
    local spawned, bytes = arm.clock(), (arm.resident() - resident) / n
    for i = 1, n do actors[i]:tell(i) end
    system:run()
    local told, bytes_after = arm.clock(), (arm.resident() - resident) / n
    for i = 1, n do actors[i]:stop() end
    system:run()
    local stopped = arm.clock()
    expect_none_left(system, before)
    return {
      bytes = bytes,
      bytes_after = bytes_after,
      spawn_rate = rate(began, spawned),
      tell_rate = rate(spawned, told),
      stop_rate = rate(told, stopped),
    }
  end, function() return handled end
end

local function restart(n, system)
  local handled, child = 0, nil
  system:spawn {
    supervisor_strategy = troupe.one_for_one { max_restarts = -1 },
    pre_start = function(actor)
      child = actor:spawn(function(self, message)
        if message == "ping" then return self:reply "pong" end
        handled = handled + 1
        error("broken", 0)
      end)
    end,
    receive = function() end,
  }
  system:run()
  return function()
    system:go(function()
      for _ = 1, n do
        child:tell "break"
        assert(child:ask "ping" == "pong")
      end
    end)
    system:run()
  end, function() return handled end
end

-- Timers ------------------------------------------------------------------------------------------

local function timers_fire(n, system)
  local fired = 0
  local function fire() fired = fired + 1 end
  return function()
    local resident = arm.resident()
    for _ = 1, n do system:schedule_once(math.random(0, 1000), fire) end
    local bytes = (arm.resident() - resident) / n
    system:run()
    return { bytes = bytes }
  end, function() return fired end
end

local function timers_cancel(n, system)
  local cancelled = 0
  local function fire() error("too late") end
  return function()
    local timers = {}
    for i = 1, n do timers[i] = system:schedule_once(60000 + math.random(0, 1000), fire) end
    for i = 1, n do
      if timers[i]:cancel() then cancelled = cancelled + 1 end
    end
    system:run()
  end, function() return cancelled end
end

-- -------------------------------------------------------------------------------------------------

math.randomseed(42)

arm.main({
  ["ping-pong"] = arm.workload(1, ping_pong),
  ["ping-pong-table"] = arm.workload(1, ping_pong_table),
  ["tell-1000"] = arm.workload(1000, tell(1000)),
  ["tell-10000"] = arm.workload(10000, tell(10000)),
  ["fan-in"] = arm.workload(1000 * PRODUCERS, fan_in),
  ["ring"] = arm.workload(1, ring),
  ["round-robin"] = arm.workload(BATCH, round_robin),
  ["deep"] = arm.workload(1, deep),
  ["priority"] = arm.workload(BATCH, priority),
  ["ask"] = arm.workload(1, ask_of(one, 1)),
  ["ask-1000"] = arm.workload(1000, ask_of(one, 1000)),
  ["scatter"] = arm.workload(100, ask_of(three, 100)),
  ["ask-64"] = arm.workload(1, ask_text(64)),
  ["ask-16k"] = arm.workload(1, ask_text(16 * 1024)),
  ["ask-256k"] = arm.workload(1, ask_text(256 * 1024)),
  ["latency"] = arm.workload(1, latency),
  ["spawn"] = arm.workload(100, spawn),
  ["lives"] = arm.workload(1, lives),
  ["idle"] = arm.workload(1, idle, true),
  ["restart"] = arm.workload(1, restart),
  ["timers-fire"] = arm.workload(1, timers_fire, true),
  ["timers-cancel"] = arm.workload(1, timers_cancel),
}, function() return troupe.system("bench", { log_level = "off" }) end)
