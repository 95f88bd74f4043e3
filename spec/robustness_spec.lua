--- What once crashed, hung, leaked or broke a promise when a system was used from odd places.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local child = require "spec.support.child"

local function ignore() end

local function slow_echo(actor, message)
  troupe.sleep(10)
  actor:reply(message)
end

--- Where a loop that should have been ended ends by itself, so that its test fails and does not
--- hang.
local FOR_EVER = 100000

describe("robustness", function()
  local kit = new_kit.each(before_each, after_each)

  local function prints(expected, code)
    local output, status = child(code)
    assert.are.same({ 0, expected }, { status, output })
  end

  describe("of what drives a system", function()
    it("SYS-9 refuses to run near the end of the C stack, and loses no mail by it", function()
      prints("0 lost, refused: true\n", [[
        local troupe = require "troupe"
        local function nested(depth, fn)
          if depth == 0 then return fn() end
          return select(2, pcall(nested, depth - 1, fn))
        end

        local system = troupe.system("demo", { log_level = "off" })
        local seen, sent, refused = 0, 0, false
        local function count(_, fails)
          seen = seen + 1
          if fails then error("counted") end
        end
        local steady = system:spawn(count)
        local fragile = system:spawn(count, "fragile",
          { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
        for depth = 120, 200 do
          steady:tell(false)
          fragile:tell(true)
          sent = sent + 2
          local why = nested(depth, function() return system:run() end)
          refused = refused or tostring(why):find("cannot run a system here", 1, true) ~= nil
          system:run()
        end
        system:terminate()
        print(("%d lost, refused: %s"):format(sent - seen, refused))
      ]])
    end)
  end)

  describe("of refs that are made while finalizers run", function()
    --- Each allocation collects all garbage; `at_collection`, if set, runs when it does.
    local collecting = [[
      local troupe = require "troupe"
      local system = troupe.system("demo", { log_level = "off" })
      local at_collection
      local function finalizer()
        setmetatable({}, { __gc = function()
          finalizer()
          if at_collection then at_collection() end
        end })
      end
      finalizer()
      collectgarbage("incremental", 0, 1000, 24)
      collectgarbage("setpause", 0)
      collectgarbage()

      local parent
      system:spawn {
        pre_start = function(actor) parent = actor end,
        receive = function(actor, count)
          for i = 1, count do actor:spawn(function() end, "child-" .. i) end
        end,
      }
      system:run()

      --- Runs `finalize` in the collection that comes after `skipped` others while `fn` runs.
      local function finalizing(skipped, finalize, fn)
        at_collection = function()
          if skipped == 0 then finalize() end
          skipped = skipped - 1
        end
        local result = fn()
        at_collection = nil
        return result
      end
    ]]

    it("SYS-8 bears one that ends the actor whose ref is made", function()
      prints("ended\n", collecting .. [[
        for i = 1, 100 do
          system:spawn(function() end, "actor-" .. i):stop()
          local selection = system:actor_selection("/user/actor-" .. i)
          finalizing(0, function() system:run() end, function() selection:tell("hello") end)
        end
        system:terminate()
        print("ended")
      ]])
    end)

    it("SYS-8 bears one that ends the children that are listed", function()
      prints("ended\n", collecting .. [[
        for skipped = 0, 25 do
          parent.ref:tell(10)
          system:run()
          finalizing(skipped, function()
            for _, child in ipairs(parent.children) do child:stop() end
            system:run()
          end, function() return parent.children end)
          for _, child in ipairs(parent.children) do child:stop() end
          system:run()
        end
        system:terminate()
        print("ended")
      ]])
    end)

    it("PATH-6 keeps refs equal when one makes the same ref meanwhile", function()
      prints("some made: true, differ: 0\n", collecting .. [[
        parent.ref:tell(1)
        system:run()
        local made, differ = 0, 0
        for skipped = 0, 5 do
          local theirs
          local ours = finalizing(skipped, function() theirs = parent:child("child-1") end,
            function() return parent:child("child-1") end)
          if theirs then made = made + 1 end
          if theirs and theirs ~= ours then differ = differ + 1 end
          ours, theirs = nil, nil
          collectgarbage()
        end
        print(("some made: %s, differ: %d"):format(made > 0, differ))
      ]])
    end)
  end)

  describe("of many refs", function()
    it("PATH-6 keeps one equal that a finalizer has made anew", function()
      local parent, made
      kit().system:spawn { receive = ignore, pre_start = function(actor) parent = actor end }
      kit():settle()
      for i = 1, 3 do parent:spawn(ignore, "child-" .. i) end
      collectgarbage()
      parent:child("child-1") -- garbage, which is finalized after this:
      setmetatable({}, { __gc = function() made = parent:child("child-1") end })

      collectgarbage()

      local others = { parent:child("child-2"), parent:child("child-3") }
      assert.are.equal(made, parent:child("child-1"))
      assert.are_not.equal(others[1], others[2])
    end)

    it("PATH-6 gives their memory back", function()
      local function held_after(count)
        do
          local refs = {}
          for i = 1, count do refs[i] = kit().system:spawn(ignore) end
          for _, ref in ipairs(refs) do ref:stop() end
        end
        for _ = 1, 2 do
          kit():settle()
          collectgarbage()
        end
        kit():settle()
        collectgarbage()
        return collectgarbage("count") * 1024
      end
      local before = held_after(100)

      local after = held_after(20000)

      assert.is_true(after - before < 20000, ("%d bytes more"):format(after - before))
    end)
  end)

  describe("of what waits", function()
    it("LIFE-10 fails a handler that was resumed from outside in its own turn", function()
      local silent = kit().system:spawn(ignore)
      local events = {}
      local thread
      local parked = kit().system:spawn(function()
        thread = coroutine.running()
        local _, why = pcall(silent.ask, silent, "hello")
        events[#events + 1] = tostring(why)
        events[#events + 1] = "parked ends"
      end)
      local intruder = kit().system:spawn(function()
        coroutine.resume(thread)
        events[#events + 1] = "intruder ends"
      end)
      parked:tell("wait")
      kit():settle()

      intruder:tell("resume it")
      kit():settle()

      assert.are.equal("intruder ends", events[1])
      assert.matches("resumed from outside", events[2], 1, true)
      assert.are.equal("parked ends", events[3])
      assert.are.equal(0, kit().system:stats().asks)
    end)

    it("LIFE-10 fails a parked handler whose coroutine is closed, and says so", function()
      local reason, thread
      kit().system.events:subscribe(function(event) reason = event.reason end, "actor_failed")
      local ref = kit().system:spawn(function()
        thread = coroutine.running()
        troupe.sleep(10)
      end)
      ref:tell("sleep")
      kit():settle()

      coroutine.close(thread)
      kit():advance(10)

      assert.matches("closed from outside", tostring(reason), 1, true)
    end)

    it("ASK-2 lets a coroutine wait anew after its owner has resumed it in a wait", function()
      local echo = kit().system:spawn(slow_echo)
      local answer
      local co = coroutine.create(function()
        pcall(echo.ask, echo, "first")
        answer = table.pack(echo:ask("second"))
      end)
      coroutine.resume(co)

      coroutine.resume(co)
      kit():advance(20)

      assert.are.same({ "second", nil, echo, n = 3 }, answer)
    end)

    it("ASK-2 leaves a coroutine that its owner has resumed in a wait to its owner", function()
      local echo = kit().system:spawn(slow_echo)
      local co = coroutine.create(function()
        pcall(echo.ask, echo, "first")
        coroutine.yield("to its owner")
      end)
      coroutine.resume(co)

      local _, yielded = coroutine.resume(co)
      kit():advance(20)

      assert.are.equal("to its owner", yielded)
      assert.are.equal("suspended", coroutine.status(co))
    end)

    it("SYS-5 ends a timer's function at its next wait, though it waits in a loop", function()
      local waits = 0
      kit().system:schedule_once(0, function()
        while waits < FOR_EVER do
          troupe.sleep(10)
          waits = waits + 1
        end
      end)
      kit():advance(25)

      kit().system:terminate()

      assert.are.equal(3, waits)
    end)

    it("SYS-5 raises in a coroutine of the user's own that waits in a loop", function()
      local echo = kit().system:spawn(slow_echo)
      local waits = 0
      local why
      coroutine.wrap(function()
        why = select(2, pcall(function()
          while waits < FOR_EVER do
            echo:ask("hello")
            waits = waits + 1
          end
        end))
      end)()
      kit():advance(25)

      kit().system:terminate()

      assert.is_true(troupe.is_error(why, "SystemTerminatedError"))
    end)

    it("SYS-5 answers at once what a coroutine of the user's own asks after the end", function()
      local echo = kit().system:spawn(slow_echo)
      kit().system:terminate()
      local err

      coroutine.wrap(function() err = select(2, echo:ask("hello")) end)()

      assert.is_true(troupe.is_error(err))
    end)
  end)

  it("SYS-8 is torn down at lua_close while functions of timers wait", function()
    prints("waiting\n", [[
      local troupe = require "troupe"
      local system = troupe.system("demo")
      for _ = 1, 10 do system:schedule_once(0, function() troupe.sleep(60000) end) end
      system:schedule_every(60000, function() troupe.sleep(60000) end, 0)
      system:go(function() troupe.sleep(5) end):await()
      print("waiting")
    ]])
  end)

  it("TMR-2 finds no timer by a number that none was given", function()
    prints("false\n", [[
      local core = require "troupe.core"
      local system = require("troupe").system("demo")
      system:spawn(function(actor)
        actor.timers:start_single("key", "tick", 1000)
        print(core.timer_cancel(actor, 1 << 26))
        actor.timers:cancel("key")
      end):tell("go")
      system:run()
    ]])
  end)

  it("SYS-5 drains however long drain_timeout_ms is", function()
    local system = kit({ drain_timeout_ms = 1e300 }).system
    local handled = 0
    local ref = system:spawn(function() handled = handled + 1 end)
    for _ = 1, 10 do ref:tell("mail") end

    system:terminate()

    assert.are.equal(10, handled)
  end)

  describe("of actors", function()
    it("SPAWN-6 refuses a child to an actor whose restart waits for its children", function()
      local parent_actor, refused
      local parent = kit().system:spawn({
        pre_start = function(actor)
          parent_actor = actor
          actor:spawn({
            receive = ignore,
            post_stop = function()
              refused = not pcall(parent_actor.spawn, parent_actor, ignore, "late")
            end,
          })
        end,
        receive = function(actor, message)
          if message == "fail" then error("a failure") end
          actor:reply(message)
        end,
      })
      kit():settle()

      parent:tell("fail")

      assert.are.equal("hello", (parent:ask("hello")))
      assert.is_true(refused)
    end)

    it("SG-12 gives an answer that sheds a request of its own scatter", function()
      prints("shed: question\nanswered: AggregateError\n", [[
        local troupe = require "troupe"
        local system = troupe.system("demo", { log_level = "off" })
        system.events:subscribe(function(e) print("shed: " .. e.message) end, "message_dropped")
        system.events:subscribe(function(e) print("answered: " .. e.message.name) end,
          "dead_letter")
        local pool = system:spawn(troupe.Router.scatter_gather_first_completed(1,
          function(actor)
            actor.parent:tell("question", actor.ref)
            troupe.sleep(60000)
          end, {}, { mailbox = { capacity = 1 } }), "pool")
        system:spawn(function(actor) actor:reply(true) end):ask("is the pool there?")
        system:actor_selection("/user/pool/routee-1"):tell("ask the pool")
        system:spawn(function(actor) actor:reply(true) end):ask("has it been asked?")
        pool:stop()
        system:terminate()
      ]])
    end)

    -- In a process of its own: in the memory that other specs have left, deep trees lie scattered.
    it("PATH-1 renders a deep path in a time that grows with its depth alone", function()
      prints("troupe://demo/user/$1/$1\n30000\nin time\n", [[
        local troupe = require "troupe"
        local SHALLOW, DEEP = 3000, 30000
        local shallow, leaf
        local link = {}
        function link.receive(actor, depth)
          leaf = actor.ref
          if depth == SHALLOW then shallow = leaf end
          if depth < DEEP then actor:spawn(link):tell(depth + 1) end
        end
        local system = troupe.system("demo")
        system:spawn(link):tell(1)
        system:run()
        local text = tostring(leaf.path)
        print(text:sub(1, 24))
        print((select(2, text:gsub("%$1", ""))))

        local function seconds(ref, times)
          local began = os.clock()
          for _ = 1, times do tostring(ref.path) end
          return os.clock() - began
        end

        -- The same number of elements: a tenth as deep, ten times as often.
        local few, many = seconds(leaf, 20), seconds(shallow, 200)
        print(few < 4 * many and "in time" or ("%g s against %g s"):format(few, many))
      ]])
    end)
  end)

  describe("of the event stream", function()
    it("EVT-1 lets actors have their turns when each event makes another", function()
      local system = kit().system
      local gone = system:spawn(ignore)
      gone:stop()
      kit():settle()
      local retries, handled_after = 0, nil
      system.events:subscribe(function(event)
        retries = retries + 1
        if retries < FOR_EVER then gone:tell(event.message) end
      end, "dead_letter")

      gone:tell("retried")
      system:spawn(function() handled_after = retries end):tell("hello")
      kit():settle()

      assert.is_true(handled_after < FOR_EVER)
    end)

    it("EVT-1 lets a full mailbox drain when what it drops is told again", function()
      local handled = {}
      local retries = 0
      local full = kit().system:spawn(function(_, message) handled[#handled + 1] = message end,
        "full", { mailbox = { capacity = 1, overflow = "drop-new" } })
      kit().system.events:subscribe(function(event)
        retries = retries + 1
        if retries < FOR_EVER then event.ref:tell(event.message) end
      end, "message_dropped")
      for i = 1, 3 do full:tell(i) end

      kit():settle()

      table.sort(handled)
      assert.are.same({ 1, 2, 3 }, handled)
    end)

    it("SYS-5 ends though each event makes another", function()
      local system = kit({ drain_timeout_ms = 0 }).system
      local gone = system:spawn(ignore)
      gone:stop()
      kit():settle()
      local retries = 0
      system.events:subscribe(function(event)
        retries = retries + 1
        if retries < FOR_EVER then gone:tell(event.message) end
      end, "dead_letter")
      gone:tell("retried")

      system:terminate()

      assert.is_true(retries < FOR_EVER)
    end)
  end)

  describe("of real time", function()
    local function work(ms)
      local ends = os.clock() + ms / 1000
      repeat until os.clock() >= ends
    end

    --- What waits 2 ms and then calls `done`, in a handler or by the message "done" to it.
    local delays = {
      schedule_once = function(actor, done) actor.system:schedule_once(2, done) end,
      start_single = function(actor) actor.timers:start_single("key", "done", 2) end,
      sleep = function(_, done)
        troupe.sleep(2)
        done()
      end,
      ask = function(actor, done)
        actor:spawn(ignore):ask("hello", 2)
        done()
      end,
      await = function(actor, done)
        actor.system:go(function() troupe.sleep(100) end):await(2)
        done()
      end,
      resolve_one = function(actor, done)
        actor.system:actor_selection("/user/nobody"):resolve_one(2)
        done()
      end,
    }

    for name, delay in pairs(delays) do
      it("TMR-5 ends no delay early that begins late in a handler: " .. name, function()
        local system <close> = troupe.system("clock")
        local began, took
        local function done() took = system:now() - began end
        system:spawn(function(actor, message)
          if message == "done" then return done() end
          work(5)
          began = system:now()
          delay(actor, done)
        end):tell("go")

        system:run()

        assert.is_true(took >= 2)
      end)
    end
  end)
end)
