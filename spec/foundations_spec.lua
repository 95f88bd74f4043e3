local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local child = require "spec.support.child"

local function ignore() end

describe("foundations", function()
  local kit = new_kit.each(before_each, after_each)

  --- Requires all modules of troupe anew, the C core included, and leaves the first ones in place.
  local function second_copy()
    local first = {}
    for name, module in pairs(package.loaded) do
      if name:match("^troupe%f[.\0]") then first[name] = module end
    end
    for name in pairs(first) do package.loaded[name] = nil end
    local copy, copied_kit = require "troupe", require "troupe.testkit"
    for name in pairs(package.loaded) do
      if name:match("^troupe%f[.\0]") then package.loaded[name] = nil end
    end
    for name, module in pairs(first) do package.loaded[name] = module end
    return copy, copied_kit
  end

  it("behaviors are Lua functions that C calls", function()
    local caller
    kit().system:spawn(function() caller = debug.getinfo(2, "S").what end):tell("look")
    kit():settle()

    assert.are.equal("C", caller)
  end)

  it("the core can be opened twice in one state", function()
    local path = assert(package.searchpath("troupe.core", package.cpath))
    local open = assert(package.loadlib(path, "luaopen_troupe_core"))

    local first, second = open("troupe.core", path), open("troupe.core", path)

    assert.is_table(first)
    assert.is_false(rawequal(first, second))
  end)

  it("two copies of troupe in one state do not disturb each other", function()
    local system = kit().system
    local copy, copied_kit = second_copy()
    assert.are_not.equal(troupe, copy)
    local other = copied_kit.system("other")
    local there = other.system:spawn(copy.actor {
      receive = function(actor, message)
        copy.sleep(10)
        actor:reply(message .. " there")
      end,
    })
    local here = system:spawn(troupe.actor {
      receive = function(actor, message)
        troupe.sleep(10)
        actor:reply(message .. " here")
      end,
    })

    assert.are.equal("hello there", (there:ask("hello")))
    assert.are.equal("hello here", (here:ask("hello")))
    assert.are.equal("task there", (other:async(function() return "task there" end):await()))
    assert.are.equal("task here", (kit():async(function() return "task here" end):await()))
    assert.is_true(other.system:schedule_once(10, ignore):cancel())
    assert.is_true(system:schedule_once(10, ignore):cancel())

    other.system:terminate()
    assert.are.equal("still here", (here:ask("still")))
  end)

  it("ASK-2 refuses a wait for a system of another copy in a handler", function()
    local copy, copied_kit = second_copy()
    local other = copied_kit.system("other")
    local there = other.system:spawn(function(actor) actor:reply("there") end)
    local why
    local here = kit().system:spawn(function() why = select(2, pcall(there.ask, there, "x")) end)
    here:tell("ask it")
    kit():settle()

    assert.matches("cannot wait for another system %('other'%)", tostring(why))
    assert.are.equal(0, kit().system:stats().parked)
    assert.is_true(copy.is_error(why, "OptionsError"))
    other.system:terminate()
  end)

  it("a collected copy of troupe leaves the other one intact", function()
    do
      local copy = second_copy()
      local system <close> = copy.system("short")
      system:spawn(ignore):tell("mail")
    end
    collectgarbage()
    collectgarbage()

    local echo = kit().system:spawn(function(actor, message) actor:reply(message) end)
    assert.are.equal("hello", (echo:ask("hello")))
  end)

  it("require makes no globals", function()
    local output, status = child [[
      local before = {}
      for name in pairs(_G) do before[name] = true end
      local troupe = require "troupe"
      require "troupe.testkit"
      local system <close> = troupe.system("demo")
      system:spawn(function() end):tell("mail")
      system:run()
      for name in pairs(_G) do
        if not before[name] then print(name) end
      end
    ]]

    assert.are.same({ "", 0 }, { output, status })
  end)

  it("troupe can be required in a coroutine that is gone when the system runs", function()
    local output, status = child [[
      local troupe, system, ref
      coroutine.wrap(function()
        troupe = require "troupe"
        system = troupe.system("demo")
        ref = system:spawn(function(actor, message)
          troupe.sleep(1)
          actor:reply(message)
        end)
      end)()
      collectgarbage()
      collectgarbage()
      print((ref:ask("hello")))
      system:terminate()
    ]]

    assert.are.same({ "hello\n", 0 }, { output, status })
  end)

  --- Runs a scenario with much that could go either way, under the options of a system, and
  --- tells what happened, in order.
  local function run(options)
    local other = testkit.system("demo", options)
    local seen = {}
    local pool = other.system:spawn(troupe.Router.random(5, function(actor, n)
      troupe.sleep(n % 3)
      seen[#seen + 1] = actor.name .. " " .. n .. " at " .. other:now()
    end), "pool")
    for n = 1, 50 do pool:tell(n) end
    other:advance(1000)
    other.system:terminate()
    return seen
  end

  it("TK-1 gives the same run for the same seed", function()
    assert.are.equal(50, #run { seed = 7 })
    assert.are.same(run { seed = 7 }, run { seed = 7 })
  end)

  it("TK-1 gives another run for another seed", function()
    assert.are_not.same(run { seed = 7 }, run { seed = 8 })
  end)

  it("TK-1 has the seed 1 by default", function()
    assert.are.same(run { seed = 1 }, run(nil))
  end)

  it("TK-1 takes the options of a system", function()
    assert.are.equal(50, #run { throughput = 1, drain_timeout_ms = 0 })
    assert.is_false(pcall(testkit.system, "demo", { colour = "red" }))
    assert.is_false(pcall(testkit.system, "no name"))
  end)

  it("TK-1 moves time only when told to", function()
    local woke_at
    kit():async(function()
      troupe.sleep(100)
      woke_at = kit():now()
    end)
    kit():settle()
    assert.are.equal(0, kit():now())
    kit():advance(99)
    assert.is_nil(woke_at)

    kit():advance(1)

    assert.are.equal(100, woke_at)
    assert.are.equal(100, kit():now())
  end)

  it("TK-1 runs everything at its own time within one advance", function()
    local seen = {}
    for _, ms in ipairs { 30, 10, 20 } do
      kit().system:schedule_once(ms, function()
        seen[#seen + 1] = kit():now()
        kit().system:schedule_once(5, function() seen[#seen + 1] = kit():now() end)
      end)
    end

    kit():advance(100)

    assert.are.same({ 10, 15, 20, 25, 30, 35 }, seen)
    assert.are.equal(100, kit():now())
  end)

  it("TK-1 lets a day pass in no time", function()
    local ticks = 0
    local timer = kit().system:schedule_every(1000, function() ticks = ticks + 1 end)
    local began = os.time()

    kit():advance(24 * 3600 * 1000)
    timer:cancel()

    assert.are.equal(24 * 3600, ticks)
    assert.is_true(os.time() - began < 60)
  end)

  it("TK-1 jumps to the next deadline when the main chunk waits", function()
    local system = kit().system
    local mute = system:spawn(ignore)
    local _, err = mute:ask("anyone?", 3600000)

    assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    assert.are.equal(3600000, kit():now())
  end)

  it("TK-1 keeps the log to itself", function()
    kit().system:spawn(function(actor) actor.log:info("hello %s", "there", { n = 1 }) end, "talks")
      :tell("talk")
    kit():settle()

    assert.are.equal(1, #kit().logs)
    local record = kit().logs[1]
    assert.are.equal("info", record.level)
    assert.are.equal("hello there", record.message)
    assert.are.equal("troupe://demo/user/talks", tostring(record.path))
    assert.are.same({ n = 1 }, record.fields)
  end)
end)
