--- One measurement of scale.lua, in a process of its own: what a message costs where there is much
--- else. Its arguments are NAME=VALUE:
--
--     messages   how many are measured
--     actors     that are alive
--     playing    of those, how many a message goes round, in no order of memory (usually 2)
--     depth      messages that go round at once (usually 1)
--     timers     that are armed, of a minute and more (usually none)
--     state      1: each actor keeps a table
--     fresh      1: a message is a fresh table and not an integer
--     collector  of Lua: "incremental", "generational", "stop", or pause/multiplier as in "400/200"
--     pauses     1: the longest time between two messages is measured, in processor time
--
-- It prints what it was: how many were handled, seconds, the longest pause in microseconds, and the
-- most MB that Lua had in use.
local arm = require "bench.arm"
local troupe = require "troupe"

local settings = {
  playing = 2, depth = 1, timers = 0, state = 0, fresh = 0, pauses = 0, collector = "incremental",
}
for _, word in ipairs(arg) do
  local name, value = word:match("^(%l+)=(.+)$")
  settings[name] = math.tointeger(tonumber(value)) or value
end
local messages, with_state = settings.messages, settings.state == 1
local fresh, timed = settings.fresh == 1, settings.pauses == 1

local handled, ended = 0, nil
local last, longest, most = 0, 0, 0

local function time_it()
  local now = os.clock() -- of the processor, for others may have it in between
  if now - last > longest then longest = now - last end
  last = now
end

local function look_at_memory() most = math.max(most, collectgarbage("count") / 1024) end

-- The first message to an actor is whom it is to tell.
local function receive(actor, message)
  local peer = actor.peer
  if not peer then
    actor.peer = message
    if with_state then actor.state = { count = 0 } end
    return
  end
  handled = handled + 1
  if timed then time_it() end
  if with_state then actor.state.count = actor.state.count + 1 end
  if handled % 4096 == 0 then look_at_memory() end
  if handled < messages then
    peer:tell(fresh and { number = message.number } or message)
  else
    ended = ended or arm.clock()
  end
end

local function set_collector(name)
  local pause, multiplier = name:match("^(%d+)/(%d+)$")
  if pause then
    collectgarbage("incremental", math.tointeger(pause), math.tointeger(multiplier))
  else
    collectgarbage(name)
  end
end

local function nothing() end

math.randomseed(42)
local system <close> = troupe.system("bench", { log_level = "off" })
local actors = {}
for i = 1, settings.actors do actors[i] = system:spawn(receive) end
for i = #actors, 2, -1 do
  local j = math.random(i)
  actors[i], actors[j] = actors[j], actors[i]
end
for i, actor in ipairs(actors) do actor:tell(actors[i % settings.playing + 1]) end
system:run()
for _ = 1, settings.timers do system:schedule_once(60000 + math.random(60000), nothing) end
set_collector(settings.collector)
collectgarbage()

system:go(function()
  last = os.clock()
  local began = arm.clock()
  for i = 1, settings.depth do actors[1]:tell(fresh and { number = i } or i) end
  while not ended do troupe.sleep(10) end
  print(("handled=%d seconds=%.9f pause=%.1f memory=%.0f"):format(messages, ended - began,
    longest * 1e6, most))
  os.exit(0)
end)
system:run()
