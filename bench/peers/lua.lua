--- An arm of the bench: actors as plain coroutines, with the least that a scheduler needs.
---
---     lua5.4 bench/peers/lua.lua WORKLOAD SIZE [WORKLOAD SIZE ...]
---     luajit bench/peers/lua.lua WORKLOAD SIZE [WORKLOAD SIZE ...]
---
--- What somebody writes in an afternoon: no addresses, no errors as values, no bounds, no counters.
--- It shows how far plain Lua gets, so it is written in the Lua that 5.4 and LuaJIT share.
---
--- Plain Lua cannot wait, and its only fine clock is os.clock, the CPU time of this process. That
--- is the clock here: nothing ever waits, and where only timers are left, the clock is moved on to
--- the next of them. `seconds` are hence CPU time too, which flatters this arm on a busy machine.

local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local clock, floor = os.clock, math.floor

-- The scheduler -----------------------------------------------------------------------------------

local ready, first, last = {}, 1, 0
local current

local function wake(actor)
  last = last + 1
  ready[last] = actor
end

--- An actor that runs `body`. When that fails, `supervisor` is told so with the actor itself.
local function spawn(body, supervisor)
  local actor = {
    thread = create(body),
    body = body,
    supervisor = supervisor,
    mailbox = {},
    oldest = 1,
    newest = 0,
    waiting = false,
  }
  wake(actor)
  return actor
end

local function restart(actor)
  actor.thread = create(actor.body)
  wake(actor)
end

local function send(actor, message)
  local newest = actor.newest + 1
  actor.newest = newest
  actor.mailbox[newest] = message
  if actor.waiting then
    actor.waiting = false
    wake(actor)
  end
end

local function has_mail() return current.oldest <= current.newest end

local function receive()
  local actor = current
  local oldest = actor.oldest
  if oldest > actor.newest then
    actor.waiting = true
    yield()
    oldest = actor.oldest
  end
  local mailbox = actor.mailbox
  local message = mailbox[oldest]
  mailbox[oldest] = nil
  if oldest == actor.newest then
    actor.oldest, actor.newest = 1, 0
  else
    actor.oldest = oldest + 1
  end
  return message
end

-- Timers: a bucket for each millisecond. A timer is a table with a method `fire`; it knows its
-- place, so that it can be taken out at once.

local buckets, armed, tick, skipped = {}, 0, 0, 0

local function now() return floor(clock() * 1000) + skipped end

local function arm(timer, ms)
  local due = tick + ms + 1
  local bucket = buckets[due]
  if not bucket then
    bucket = { size = 0 }
    buckets[due] = bucket
  end
  local size = bucket.size + 1
  bucket.size = size
  bucket[size] = timer
  timer.bucket, timer.place = bucket, size
  armed = armed + 1
end

local function cancel(timer)
  local bucket, place = timer.bucket, timer.place
  local size = bucket.size
  local mover = bucket[size]
  bucket[place] = mover
  mover.place = place
  bucket[size] = nil
  bucket.size = size - 1
  armed = armed - 1
end

local function fire_due()
  local time = now()
  while tick < time and armed > 0 do
    tick = tick + 1
    local bucket = buckets[tick]
    if bucket then
      while bucket.size > 0 do
        local timer = bucket[bucket.size]
        cancel(timer)
        timer:fire()
      end
      buckets[tick] = nil
    end
  end
  tick = time
end

-- Time is looked up once in so many turns, which is far less than a millisecond.
local TURNS = 128

--- Runs until nothing is left to do.
local function run()
  while true do
    local turns = 0
    while first <= last and turns < TURNS do
      local actor = ready[first]
      ready[first] = nil
      first = first + 1
      current = actor
      local ok, failure = resume(actor.thread)
      if not ok then
        if not actor.supervisor then error(failure, 0) end
        send(actor.supervisor, actor)
      end
      turns = turns + 1
    end
    if first > last then
      first, last = 1, 0
      if armed == 0 then return end
      skipped = skipped + 1
    end
    fire_due()
  end
end

-- Requests: what is sent is a table that knows who waits for the reply, and is its own timer.

local function give(request, value)
  local caller = request.caller
  if not caller then return end
  request.caller = nil
  caller.reply = value
  wake(caller)
end

local function reply(request, value)
  if request.caller then cancel(request) end
  give(request, value)
end

--- The first reply of any of them, or nil after timeout_ms.
local function ask_all(actors, message, timeout_ms)
  local caller = current
  local request = { caller = caller, message = message, fire = give }
  arm(request, timeout_ms)
  for i = 1, #actors do send(actors[i], request) end
  yield()
  return caller.reply
end

local function ask(actor, message, timeout_ms)
  local caller = current
  local request = { caller = caller, message = message, fire = give }
  arm(request, timeout_ms)
  send(actor, request)
  yield()
  return caller.reply
end

-- Workloads ---------------------------------------------------------------------------------------

-- Each is made ready for n operations and gives the function that is measured. That one returns how
-- many were handled, and what else there is to tell.

local TIMEOUT_MS = 5000

local workloads = {}

local function batches(n, size, batch)
  for begun = 0, n - 1, size do batch(math.min(size, n - begun)) end
end

--- Resident memory in bytes, where the system tells.
local function resident()
  local status = io.open("/proc/self/status")
  if not status then return 0 end
  local kilobytes = status:read("*a"):match("VmRSS:%s*(%d+)")
  status:close()
  return kilobytes * 1024
end

--- Two actors answer with what next_message makes of a message, until that is nothing.
local function ping_pong(first_message, next_message)
  return function(n)
    local handled = 0
    local ping, pong
    local function player(other)
      return function()
        while true do
          local answer = next_message(receive())
          handled = handled + 1
          if answer then send(other(), answer) end
        end
      end
    end
    ping = spawn(player(function() return pong end))
    pong = spawn(player(function() return ping end))
    return function()
      send(ping, first_message(n))
      run()
      return handled
    end
  end
end

workloads["ping-pong"] = ping_pong(function(n) return n end, function(left)
  return left > 1 and left - 1
end)
workloads["ping-pong-table"] = ping_pong(function(n) return { left = n } end, function(ball)
  return ball.left > 1 and { left = ball.left - 1 }
end)

--- An actor that counts numbers, and replies to anything else with how many they were.
local function counter()
  local count = 0
  while true do
    local message = receive()
    if type(message) == "number" then
      count = count + 1
    else
      reply(message, count)
    end
  end
end

local function tell(actor, n, size)
  local count
  batches(n, size, function(batch)
    for i = 1, batch do send(actor, i) end
    count = assert(ask(actor, "how many?", TIMEOUT_MS))
  end)
  return count
end

local function tell_by(size)
  return function(n)
    local actor, count = spawn(counter), nil
    return function()
      spawn(function() count = tell(actor, n, size) end)
      run()
      return count
    end
  end
end

workloads["tell-1000"] = tell_by(1000)
workloads["tell-10000"] = tell_by(10000)

workloads["fan-in"] = function(n)
  local consumer, count = spawn(counter), 0
  return function()
    for _ = 1, 10 do
      spawn(function() count = math.max(count, tell(consumer, n / 10, 1000)) end)
    end
    run()
    return count
  end
end

workloads["ring"] = function(n)
  local ring, handled = {}, 0
  for i = 1, 1000 do
    ring[i] = spawn(function()
      local following = ring[i % 1000 + 1]
      while true do
        local left = receive()
        handled = handled + 1
        if left > 1 then send(following, left - 1) end
      end
    end)
  end
  return function()
    send(ring[1], n)
    run()
    return handled
  end
end

workloads["round-robin"] = function(n)
  local workers, handled = {}, 0
  local router = spawn(function()
    local turn = 0
    while true do
      turn = turn % 8 + 1
      send(workers[turn], receive())
    end
  end)
  return function()
    local producer = spawn(function()
      batches(n, 1000, function(batch)
        for i = 1, batch do send(router, i) end
        for _ = 1, floor(batch / 125) do receive() end
      end)
    end)
    for i = 1, 8 do
      workers[i] = spawn(function()
        while true do
          for _ = 1, 125 do
            receive()
            handled = handled + 1
          end
          send(producer, "done")
        end
      end)
    end
    run()
    return handled
  end
end

-- Asking

local function server()
  while true do
    local request = receive()
    reply(request, request.message)
  end
end

--- Runs `callers` that ask n times in all; gives how many times the answer was right.
local function ask_by(callers, n, question)
  local right = 0
  for i = 1, callers do
    spawn(function()
      for k = i, n, callers do
        if question(k) then right = right + 1 end
      end
    end)
  end
  run()
  return right
end

local function asks(callers)
  return function(n)
    local actor = spawn(server)
    local function question(k) return ask(actor, k, TIMEOUT_MS) == k end
    return function() return ask_by(callers, n, question) end
  end
end

workloads["ask"] = asks(1)
workloads["ask-1000"] = asks(1000)

workloads["scatter"] = function(n)
  local replicas = { spawn(server), spawn(server), spawn(server) }
  local function question(k) return ask_all(replicas, k, 250) == k end
  return function() return ask_by(100, n, question) end
end

local function ask_with(bytes)
  return function(n)
    local text = ("x"):rep(bytes)
    local actor = spawn(function()
      while true do
        local request = receive()
        reply(request, #request.message)
      end
    end)
    local function question() return ask(actor, text, TIMEOUT_MS) == bytes end
    return function() return ask_by(1, n, question) end
  end
end

workloads["ask-64"] = ask_with(64)
workloads["ask-16k"] = ask_with(16384)
workloads["ask-256k"] = ask_with(262144)

workloads["latency"] = function(n)
  local actor, times, busy, right = spawn(server), {}, true, 0
  local function player(other)
    return function()
      while busy do send(other(), receive()) end
    end
  end
  for i = 1, 500 do
    local ping, pong
    ping = spawn(player(function() return pong end))
    pong = spawn(player(function() return ping end))
    send(ping, i)
  end
  return function()
    spawn(function()
      for i = 1, n do
        local began = clock()
        if ask(actor, i, TIMEOUT_MS) == i then right = right + 1 end
        times[i] = clock() - began
      end
      busy = false
    end)
    run()
    table.sort(times)
    local function quantile(q) return times[math.max(1, floor(n * q))] * 1e6 end
    return right,
      ("p50=%.1f p99=%.1f p999=%.1f"):format(quantile(0.5), quantile(0.99), quantile(0.999))
  end
end

-- Lives

--- An actor's body that counts numbers by on_message, and stops at anything else.
local function mortal(on_message, on_stop)
  return function()
    while type(receive()) == "number" do on_message() end
    on_stop()
  end
end

local function lives(size)
  return function(n)
    local handled, stopped = 0, 0
    local body = mortal(function() handled = handled + 1 end, function() stopped = stopped + 1 end)
    return function()
      batches(n, size or n, function(batch)
        local actors = {}
        for i = 1, batch do actors[i] = spawn(body) end
        for i = 1, batch do send(actors[i], i) end
        for i = 1, batch do send(actors[i], "stop") end
        run()
      end)
      return math.min(handled, stopped)
    end
  end
end

workloads["spawn"] = lives(100)
workloads["lives"] = lives()

workloads["idle"] = function(n)
  local handled, stopped = 0, 0
  local body = mortal(function() handled = handled + 1 end, function() stopped = stopped + 1 end)
  return function()
    local empty = resident()
    local actors = {}
    local function per_second(action)
      local began = clock()
      for i = 1, n do action(i) end
      run()
      return n / (clock() - began)
    end
    local function bytes() return (resident() - empty) / n end
    local spawned = per_second(function(i) actors[i] = spawn(body) end)
    local idle = bytes()
    local told = per_second(function(i) send(actors[i], i) end)
    local after = bytes()
    local ended = per_second(function(i) send(actors[i], "stop") end)
    return math.min(handled, stopped),
      ("bytes=%.0f bytes_after=%.0f spawn_rate=%.0f tell_rate=%.0f stop_rate=%.0f"):format(
        idle, after, spawned, told, ended)
  end
end

workloads["restart"] = function(n)
  local began = 0
  local supervisor = spawn(function()
    while true do restart(receive()) end
  end)
  local child = spawn(function()
    began = began + 1
    while true do
      local message = receive()
      if message == "fail" then error("failed on purpose", 0) end
      reply(message, "pong")
    end
  end, supervisor)
  return function()
    spawn(function()
      for _ = 1, n do
        send(child, "fail")
        assert(ask(child, "ping", TIMEOUT_MS) == "pong")
      end
    end)
    run()
    return began - 1
  end
end

-- Timers

workloads["timers-fire"] = function(n)
  local handled = 0
  local function fire() handled = handled + 1 end
  return function()
    local empty = resident()
    math.randomseed(42)
    tick = now()
    for _ = 1, n do arm({ fire = fire }, math.random(0, 1000)) end
    local bytes = (resident() - empty) / n
    run()
    return handled, ("bytes=%.0f"):format(bytes)
  end
end

workloads["timers-cancel"] = function(n)
  local timers = {}
  local function fire() error("a timer fired early", 0) end
  return function()
    local before = armed
    math.randomseed(42)
    tick = now()
    for i = 1, n do
      timers[i] = { fire = fire }
      arm(timers[i], 60000 + math.random(0, 1000))
    end
    local started = armed - before
    for i = 1, n do cancel(timers[i]) end
    return started - (armed - before)
  end
end

-- Mailboxes

workloads["deep"] = function(n)
  local handled = 0
  local actor = spawn(function()
    while true do
      receive()
      handled = handled + 1
    end
  end)
  return function()
    for i = 1, n do send(actor, i) end
    run()
    return handled
  end
end

workloads["priority"] = function(n)
  local handled = 0
  local actor = spawn(function() -- takes all mail, then handles it by levels
    while true do
      local levels = { {}, {}, {} }
      repeat
        local message = receive()
        local level = levels[message % 3 + 1]
        level[#level + 1] = message
      until not has_mail()
      for i = 1, 3 do
        for _ = 1, #levels[i] do handled = handled + 1 end
      end
    end
  end)
  return function()
    batches(n, 1000, function(batch)
      for i = 1, batch do send(actor, i) end
      run()
    end)
    return handled
  end
end

-- The program -------------------------------------------------------------------------------------

--- Not warmed up, mostly because memory is measured.
local cold = { idle = true, latency = true, ["timers-fire"] = true }

local function measure(name, size)
  local workload = workloads[name]
  if not workload then
    io.stderr:write(name, ": no such workload here\n")
    os.exit(3)
  end
  if not cold[name] then workload(math.min(size, 10000))() end
  local operations = workload(size)
  collectgarbage()
  local began = clock()
  local handled, more = operations()
  local seconds = clock() - began
  local line = ("handled=%d seconds=%.6f cpu=%.6f"):format(handled, seconds, seconds)
  print(more and line .. " " .. more or line)
end

io.stdout:setvbuf "line"
for i = 1, #arg, 2 do measure(arg[i], tonumber(arg[i + 1])) end
