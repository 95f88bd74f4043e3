--- What once crashed, hung, leaked or broke a promise when a system was used from odd places.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local child = require "spec.support.child"

local function ignore() end

local function slow_echo(actor, message)
  troupe.sleep(10)
  actor:reply(message)
end

--- A wait that its test takes for endless; less than that lets a test fail instead of hang.
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

    it("SYS-8 bears finalizers that drive a system while it makes a ref", function()
      prints("ended\n", [[
        local system = require "troupe".system("demo", { log_level = "off" })
        local drives = false
        local function finalizer()
          setmetatable({}, { __gc = function()
            if drives then pcall(system.run, system) end
            finalizer()
          end })
        end
        for _ = 1, 5 do finalizer() end
        collectgarbage("setpause", 0)
        for i = 1, 3000 do
          system:spawn(function() end, "a" .. i):stop()
          collectgarbage()
          local selection = system:actor_selection("/user/a" .. i)
          drives = true
          selection:tell("hello")
          drives = false
          system:run()
        end
        system:terminate()
        print("ended")
      ]])
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

    it("PATH-1 renders the path of a deep tree in no time", function()
      local DEPTH = 10000
      local leaf
      local link = {}
      function link.receive(actor, below)
        leaf = actor.ref
        if below > 0 then actor:spawn(link):tell(below - 1) end
      end
      kit().system:spawn(link):tell(DEPTH)
      kit():settle()

      local began = os.clock()
      local text = tostring(leaf.path)

      assert.is_true(os.clock() - began < 0.25)
      assert.are.equal("troupe://demo/user/$1/$1", text:sub(1, 24))
      assert.are.equal(DEPTH + 1, select(2, text:gsub("%$1", "")))
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
      local ref = kit().system:spawn(function(_, message) handled[#handled + 1] = message end, "full",
        { mailbox = { capacity = 1, overflow = "drop-new" } })
      kit().system.events:subscribe(function(event)
        retries = retries + 1
        if retries < FOR_EVER then event.ref:tell(event.message) end
      end, "message_dropped")
      for i = 1, 3 do ref:tell(i) end

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

    --- How long a delay of 2 ms takes that `wait(actor, done)` begins after 5 ms of work.
    local function measured(wait)
      local system <close> = troupe.system("clock")
      local took
      system:spawn(function(actor)
        work(5)
        local began = system:now()
        wait(actor, function() took = system:now() - began end)
      end):tell("go")
      system:run()
      return took
    end

    it("TMR-5 fires no timer early that starts late in a handler", function()
      assert.is_true(measured(function(actor, done)
        actor.system:schedule_once(2, done)
      end) >= 2)
    end)
  end)
end)
