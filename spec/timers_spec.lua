local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("timers", function()
  local kit = new_kit.each(before_each, after_each)

  -- An actor whose messages are functions of the actor, or ticks, which it records with their time.
  local function spawn_recorder(ticks)
    return kit().system:spawn(function(actor, message)
      if type(message) == "function" then return message(actor) end
      ticks[#ticks + 1] = { message, kit():now() }
    end)
  end

  local function times(ticks)
    local list = {}
    for i, tick in ipairs(ticks) do list[i] = tick[2] end
    return list
  end

  local function names(ticks)
    local list = {}
    for i, tick in ipairs(ticks) do list[i] = tick[1] end
    return list
  end

  describe("of an actor", function()
    it("TMR-1 start_single delivers its message once, after the delay", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor) actor.timers:start_single("key", "tick", 100) end)

      kit():advance(99)
      assert.are.same({}, ticks)
      kit():advance(1000)

      assert.are.same({ { "tick", 100 } }, ticks)
    end)

    it("TMR-1 cost no more after many have been cancelled", function()
      local many, before, after = 120000, nil, nil
      spawn_recorder({}):tell(function(actor)
        local function seconds()
          local began = os.clock()
          for i = 1, 2000 do
            actor.timers:start_single(i, "tick", 100)
            actor.timers:cancel(i)
          end
          return os.clock() - began
        end
        before = math.max(seconds(), seconds())
        for i = 1, many do actor.timers:start_single(i, "tick", 100) end
        for i = 1, many do actor.timers:cancel(i) end
        for _ = 1, 10 do seconds() end -- so that the map has been swept
        after = math.min(seconds(), seconds(), seconds())
      end)

      kit():advance(0)

      assert.is_true(after < 2 * before, ("%g s after, %g s before"):format(after, before))
    end)

    it("TMR-1 act as the message does, where that is a signal", function()
      local seen = {}
      local ref = kit().system:spawn({
        receive = function(actor, message)
          seen[#seen + 1] = message
          actor.timers:start_single("kill", troupe.Kill, 10)
          actor.timers:start_single("stop", troupe.PoisonPill, 20)
        end,
        pre_restart = function(_, reason) seen[#seen + 1] = reason.name end,
        post_restart = function(actor)
          actor.timers:start_fixed_delay("stop", troupe.PoisonPill, 20)
        end,
        post_stop = function() seen[#seen + 1] = kit():now() end,
      })
      ref:tell("start")

      kit():advance(100)

      assert.are.same({ "start", "ActorKilledError", 30 }, seen)
    end)

    it("TMR-1 start_fixed_delay and start_fixed_rate deliver again and again", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_fixed_delay("a", "delay", 100)
        actor.timers:start_fixed_rate("b", "rate", 150)
      end)

      kit():advance(300)

      assert.are.same({
        { "delay", 100 }, { "rate", 150 }, { "delay", 200 }, { "rate", 300 }, { "delay", 300 },
      }, ticks)
    end)

    it("TMR-1 delivers nil and tables by reference, without a sender", function()
      local payload = {}
      local received = {}
      kit().system:spawn({
        pre_start = function(actor)
          actor.timers:start_single("a", nil, 10)
          actor.timers:start_single("b", payload, 20)
        end,
        receive = function(actor, message)
          received[#received + 1] = { message = message, sender = actor.sender }
        end,
      })

      kit():advance(20)

      assert.equal(2, #received)
      assert.is_nil(received[1].message)
      assert.is_true(rawequal(payload, received[2].message))
      assert.is_nil(received[1].sender)
    end)

    it("TMR-1 takes any value but nil and NaN as a key", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        for _, key in ipairs { "s", 1, 1.5, true, false, {}, print, actor.ref } do
          actor.timers:start_single(key, tostring(key), 10)
          assert.is_true(actor.timers:is_active(key))
        end
        assert.error_matches(function() actor.timers:start_single(nil, "m", 10) end, "key")
        assert.error_matches(function() actor.timers:start_single(0 / 0, "m", 10) end, "key")
      end)

      kit():advance(10)

      assert.equal(8, #ticks)
    end)

    it("TMR-1 tells keys apart as a table does", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_single(1, "integer", 10)
        actor.timers:start_single(1.0, "float of the same value", 10)
        actor.timers:start_single("1", "string", 10)
        actor.timers:start_single({}, "a table", 10)
        actor.timers:start_single({}, "another table", 10)
      end)

      kit():advance(10)

      assert.are.same(
        { "float of the same value", "string", "a table", "another table" }, names(ticks))
    end)

    it("TMR-1 replaces the timer that has the same key, whatever its kind", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_fixed_rate("key", "old", 10)
        actor.timers:start_single("key", "new", 25)
      end)

      kit():advance(100)

      assert.are.same({ { "new", 25 } }, ticks)
    end)

    it("TMR-1 keeps the timers of two actors apart under the same key", function()
      local first, second = {}, {}
      local a, b = spawn_recorder(first), spawn_recorder(second)
      local function start(actor) actor.timers:start_single("key", "tick", 10) end
      a:tell(start)
      b:tell(start)
      a:tell(function(actor) actor.timers:cancel("key") end)

      kit():advance(10)

      assert.are.same({}, first)
      assert.are.same({ { "tick", 10 } }, second)
    end)

    it("TMR-1 cancel ends one timer, cancel_all every one", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_fixed_rate("a", "a", 10)
        actor.timers:start_fixed_delay("b", "b", 10)
        actor.timers:start_single("c", "c", 35)
      end)

      kit():advance(15)
      ref:tell(function(actor) actor.timers:cancel("a") end)
      kit():advance(10)
      ref:tell(function(actor) actor.timers:cancel_all() end)
      kit():advance(100)

      assert.are.same({ { "a", 10 }, { "b", 10 }, { "b", 20 } }, ticks)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("TMR-1 takes a cancel of a key that is unknown, spent or cancelled", function()
      local ref = spawn_recorder({})
      ref:tell(function(actor) actor.timers:start_single("spent", "tick", 10) end)
      kit():advance(10)

      local again = kit().system:spawn(function(actor)
        actor.timers:cancel("unknown")
        actor.timers:start_single("twice", "tick", 10)
        actor.timers:cancel("twice")
        actor.timers:cancel("twice")
        actor:reply("fine")
      end)
      ref:tell(function(actor) actor.timers:cancel("spent") end)

      assert.equal("fine", (again:ask("go")))
      assert.are.same({}, kit().logs)
    end)

    it("TMR-1 is_active tells whether a timer will still deliver", function()
      local active = {}
      local ref = kit().system:spawn(function(actor, message)
        local timers = actor.timers
        if message == "look" then
          active[#active + 1] = { timers:is_active("once"), timers:is_active("often") }
        elseif message == "start" then
          timers:start_single("once", "tick", 10)
          timers:start_fixed_rate("often", "tick", 10)
        elseif message == "cancel" then
          timers:cancel("often")
        end
      end)

      for _, message in ipairs { "look", "start", "look" } do ref:tell(message) end
      kit():advance(10)
      for _, message in ipairs { "look", "cancel", "look" } do ref:tell(message) end
      kit():settle()

      assert.are.same(
        { { false, false }, { true, true }, { false, true }, { false, false } }, active)
    end)

    it("TMR-1 keeps a timer whose start nobody holds on to", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor) actor.timers:start_single({}, {}, 100) end)
      kit():settle()

      collectgarbage()
      collectgarbage()
      kit():advance(100)

      assert.equal(1, #ticks)
    end)

    it("TMR-1 forgets the keys of timers that are over", function()
      local keys = setmetatable({}, { __mode = "k" })
      local ref = kit().system:spawn(function(actor, message)
        if message == "tick" then return end
        local key = {}
        keys[key] = true
        actor.timers:start_single(key, "tick", 0)
      end)
      for _ = 1, 1000 do
        ref:tell("start")
        kit():settle()
      end

      collectgarbage()
      collectgarbage()

      local left = 0
      for _ in pairs(keys) do left = left + 1 end
      assert.is_true(left < 100, left .. " keys are left")
    end)

    it("TMR-1 leaves nothing behind 10,000 timers that fired or were cancelled", function()
      local ref = kit().system:spawn(function(actor, message)
        if message ~= "start" then return end
        for i = 1, 100 do
          actor.timers:start_single(i, { i }, 0)
          actor.timers:start_single({}, { i }, 1e6)
        end
        actor.timers:start_single("end", "cancel", 1)
        troupe.sleep(2)
        actor.timers:cancel_all()
      end)
      local function rounds(n)
        for _ = 1, n do
          ref:tell("start")
          kit():advance(5)
        end
        collectgarbage()
        collectgarbage()
        return kit().system:stats()
      end
      local before = rounds(2)

      local after = rounds(50)

      assert.equal(0, after.timers)
      assert.equal(before.anchored, after.anchored)
      assert.equal(before.engine_bytes, after.engine_bytes)
    end)
  end)

  describe("taken back", function()
    -- The actor is in a handler from 0 to 100; "old" is in its mailbox from 50 on.
    local function spawn_busy(received, at_the_end)
      local ref = kit().system:spawn(function(actor, message)
        received[#received + 1] = message
        if message ~= "work" then return end
        actor.timers:start_single("key", "old", 50)
        troupe.sleep(100)
        at_the_end(actor)
      end)
      ref:tell("work")
      return ref
    end

    it("TMR-2 a queued message is not delivered after cancel", function()
      local received = {}
      spawn_busy(received, function(actor) actor.timers:cancel("key") end)

      kit():advance(1000)

      assert.are.same({ "work" }, received)
    end)

    it("TMR-2 a queued message is not delivered after cancel_all", function()
      local received = {}
      spawn_busy(received, function(actor) actor.timers:cancel_all() end)

      kit():advance(1000)

      assert.are.same({ "work" }, received)
    end)

    it("TMR-2 a queued message is not delivered after its timer was replaced", function()
      local received = {}
      spawn_busy(received, function(actor) actor.timers:start_single("key", "new", 10) end)

      kit():advance(1000)

      assert.are.same({ "work", "new" }, received)
    end)

    it("TMR-2 a queued tick of a repeating timer is not delivered after cancel", function()
      local received = {}
      local ref = kit().system:spawn(function(actor, message)
        received[#received + 1] = message
        if message ~= "work" then return end
        actor.timers:start_fixed_rate("rate", "rate", 30)
        actor.timers:start_fixed_delay("delay", "delay", 30)
        troupe.sleep(100)
        actor.timers:cancel("rate")
        actor.timers:cancel("delay")
      end)
      ref:tell("work")

      kit():advance(1000)

      assert.are.same({ "work" }, received)
    end)

    it("TMR-2 the mail around a tick that was taken back keeps its order", function()
      local received = {}
      local ref = spawn_busy(received, function(actor) actor.timers:cancel("key") end)
      kit():advance(40)
      ref:tell("before")
      kit():advance(20)
      ref:tell("after")

      kit():advance(1000)

      assert.are.same({ "work", "before", "after" }, received)
    end)

    it("TMR-2 without a cancel the queued message is delivered when the actor is free", function()
      local received = {}
      spawn_busy(received, function() end)

      kit():advance(100)

      assert.are.same({ "work", "old" }, received)
    end)

    it("TMR-2 leaves no queued message behind", function()
      spawn_busy({}, function(actor) actor.timers:cancel("key") end)

      kit():advance(100)

      assert.equal(0, kit().system:stats().queued)
    end)
  end)

  describe("of an incarnation", function()
    it("TMR-3 end with it", function()
      local ticks = 0
      local ref = kit().system:spawn(function(actor, message)
        if message == "tick" then ticks = ticks + 1
        elseif message == "start" then actor.timers:start_fixed_rate("key", "tick", 10)
        else error("boom", 0)
        end
      end)
      ref:tell("start")
      kit():advance(30)

      ref:tell("boom")
      kit():advance(1000)

      assert.equal(3, ticks)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("TMR-3 tick once an interval after five restarts, when pre_start starts them", function()
      local ticks = 0
      local ref = kit().system:spawn({
        pre_start = function(actor) actor.timers:start_fixed_rate("key", "tick", 10) end,
        receive = function(_, message)
          if message == "boom" then error("boom", 0) end
          ticks = ticks + 1
        end,
      })
      for _ = 1, 5 do ref:tell("boom") end
      kit():settle()

      kit():advance(100)

      assert.equal(10, ticks)
    end)

    it("TMR-3 leave no queued message to the next incarnation", function()
      local received = {}
      local ref = kit().system:spawn(function(actor, message)
        received[#received + 1] = message
        if message ~= "work" then return end
        actor.timers:start_single("key", "old", 50)
        troupe.sleep(100)
        error("boom", 0)
      end)
      ref:tell("work")

      kit():advance(1000)

      assert.are.same({ "work" }, received)
    end)

    it("TMR-3 end when the actor stops, without a dead letter", function()
      local letters = {}
      local function note(event) letters[#letters + 1] = event end
      kit().system.events:subscribe(note, "dead_letter")
      local ref = kit().system:spawn(function(actor)
        actor.timers:start_single("once", "tick", 10)
        actor.timers:start_fixed_rate("often", "tick", 10)
        troupe.sleep(50)
        actor:stop()
      end)
      ref:tell("go")

      kit():advance(1000)

      assert.equal(0, kit().system:stats().timers)
      assert.are.same({}, letters)
    end)

    it("TMR-3 end with it when its pre_restart or post_stop starts them", function()
      for _, hook in ipairs { "pre_restart", "post_stop" } do
        local received = {}
        local ref = kit().system:spawn({
          receive = function(_, message)
            received[#received + 1] = message
            if message == "boom" then error("boom", 0) end
          end,
          [hook] = function(actor)
            pcall(actor.timers.start_single, actor.timers, "key", "late", 10)
          end,
        })
        ref:tell("boom")

        kit():advance(100)

        assert.are.same({ "boom" }, received, hook)
      end
    end)

    it("TMR-3 are over when pre_restart runs", function()
      local active
      local ref = kit().system:spawn({
        pre_start = function(actor) actor.timers:start_fixed_rate("key", "tick", 10) end,
        receive = function() error("boom", 0) end,
        pre_restart = function(actor) active = actor.timers:is_active("key") end,
      })

      ref:tell("boom")
      kit():settle()

      assert.is_false(active)
    end)

    it("TMR-3 go on when the handling of a tick fails and is resumed", function()
      for _, start in ipairs { "start_fixed_delay", "start_fixed_rate" } do
        local handled = {}
        local began = kit():now()
        kit().system:spawn({
          pre_start = function(actor) actor.timers[start](actor.timers, "key", "tick", 10) end,
          receive = function()
            handled[#handled + 1] = kit():now() - began
            error("boom", 0)
          end,
        }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

        kit():advance(30)

        assert.are.same({ 10, 20, 30 }, handled, start)
      end
    end)

    it("TMR-3 give their own message to pre_restart when handling it fails", function()
      local given
      kit().system:spawn({
        pre_start = function(actor) actor.timers:start_single("key", "tick", 10) end,
        receive = function() error("boom", 0) end,
        pre_restart = function(_, _, message) given = message end,
        post_restart = function() end,
      })

      kit():advance(10)

      assert.equal("tick", given)
    end)

    it("TMR-3 keep running over a failure that is resumed", function()
      local ticks = 0
      local ref = kit().system:spawn(function(actor, message)
        if message == "tick" then ticks = ticks + 1
        elseif message == "start" then actor.timers:start_fixed_rate("key", "tick", 10)
        else error("boom", 0)
        end
      end, "resumed", { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
      ref:tell("start")
      ref:tell("boom")

      kit():advance(30)

      assert.equal(3, ticks)
    end)
  end)

  describe("that repeat", function()
    local function handling_times(start, duration)
      local handled = {}
      kit().system:spawn({
        pre_start = start,
        receive = function()
          handled[#handled + 1] = kit():now()
          local ms = duration(#handled)
          if ms > 0 then troupe.sleep(ms) end
        end,
      })
      return handled
    end

    it("TMR-3 fixed delay counts from the end of the handling", function()
      local handled = handling_times(function(actor)
        actor.timers:start_fixed_delay("key", "tick", 100)
      end, function() return 30 end)

      kit():advance(500)

      assert.are.same({ 100, 230, 360, 490 }, handled)
    end)

    it("TMR-3 fixed delay counts from the end of the handling also when the tick was queued",
      function()
        local handled = {}
        local ref = kit().system:spawn(function(actor, message)
          if message == "work" then
            actor.timers:start_fixed_delay("key", "tick", 100)
            return troupe.sleep(250)
          end
          handled[#handled + 1] = kit():now()
        end)
        ref:tell("work")

        kit():advance(500)

        assert.are.same({ 250, 350, 450 }, handled)
      end)

    it("TMR-3 fixed rate stays on the grid when handling takes part of the interval", function()
      local handled = handling_times(function(actor)
        actor.timers:start_fixed_rate("key", "tick", 100)
      end, function() return 30 end)

      kit():advance(100000)

      assert.equal(1000, #handled)
      for i, at in ipairs(handled) do assert.equal(i * 100, at) end
    end)

    it("TMR-3 fixed rate does not drift with an interval that is no binary fraction", function()
      local handled = handling_times(function(actor)
        actor.timers:start_fixed_rate("key", "tick", 0.1)
      end, function() return 0 end)

      kit():advance(1000)

      assert.equal(10000, #handled)
    end)

    it("TMR-3 fixed rate skips the ticks it missed and goes on at the grid", function()
      local handled = handling_times(function(actor)
        actor.timers:start_fixed_rate("key", "tick", 100)
      end, function(n) return n == 1 and 1030 or 0 end)

      kit():advance(1500)

      local late, on_grid = 0, {}
      for i = 2, #handled do
        if handled[i] < 1200 then late = late + 1 else on_grid[#on_grid + 1] = handled[i] end
      end
      assert.equal(100, handled[1])
      assert.is_true(late <= 1, "ticks made up for: " .. late)
      assert.are.same({ 1200, 1300, 1400, 1500 }, on_grid)
    end)

    it("TMR-3 fixed rate never has two ticks in the mailbox", function()
      local ref = kit().system:spawn(function(actor, message)
        if message ~= "work" then return end
        actor.timers:start_fixed_rate("key", "tick", 10)
        troupe.sleep(1000)
      end)
      ref:tell("work")

      kit():advance(999)

      assert.is_true(kit().system:stats().queued <= 1)
    end)
  end)

  describe("numbers", function()
    it("TMR-4 a delay of 0 fires in the next turn, not in this one", function()
      local order = {}
      local ref = kit().system:spawn(function(actor, message)
        order[#order + 1] = message
        if message ~= "work" then return end
        actor.timers:start_single("key", "tick", 0)
        order[#order + 1] = "end of work"
      end)
      ref:tell("work")

      kit():settle()

      assert.are.same({ "work", "end of work", "tick" }, order)
      assert.equal(0, kit():now())
    end)

    it("TMR-4 a delay of 0 started again and again lets others run", function()
      local ticks, heard = 0, nil
      local spinner = kit().system:spawn(function(actor, message)
        if message == "tick" then ticks = ticks + 1 end
        if not heard then actor.timers:start_single("key", "tick", 0) end
      end)
      local other = kit().system:spawn(function(_, message) heard = message end)
      spinner:tell("start")
      other:tell("hello")

      kit():settle()

      assert.equal("hello", heard)
      assert.is_true(ticks <= 1000)
    end)

    it("TMR-4 initial is the interval by default and may be 0", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_fixed_rate("a", "rate", 1000, 0)
        actor.timers:start_fixed_delay("b", "delay", 1000, 5)
      end)

      kit():advance(1005)

      assert.are.same(
        { { "rate", 0 }, { "delay", 5 }, { "rate", 1000 }, { "delay", 1005 } }, ticks)
    end)

    local function refused(start)
      local asker = kit().system:spawn(function(actor)
        local ok, why = pcall(start, actor.timers)
        actor:reply({ ok = ok, why = why, active = actor.timers:is_active("key") })
      end)
      local outcome = asker:ask("go")
      kit():advance(5000)
      return not outcome.ok and not outcome.active and outcome.why
    end

    local no_delays = { -1, -1e18, 0 / 0, 1 / 0, -1 / 0, "10", {}, true }

    it("TMR-4 refuses a delay that is negative, NaN, infinite or no number", function()
      for _, delay in ipairs(no_delays) do
        local why = refused(function(timers) timers:start_single("key", "tick", delay) end)
        assert.matches("delay", why, 1, true)
      end
      assert.matches("delay", refused(function(timers) timers:start_single("key", "tick") end),
        1, true)
    end)

    for _, start in ipairs { "start_fixed_delay", "start_fixed_rate" } do
      it("TMR-4 " .. start .. " refuses such an interval, and 0", function()
        for _, interval in ipairs { 0, -0.0, table.unpack(no_delays) } do
          local why = refused(function(timers) timers[start](timers, "key", "tick", interval) end)
          assert.matches("interval", why, 1, true)
        end
      end)

      it("TMR-4 " .. start .. " refuses such an initial delay", function()
        for _, initial in ipairs(no_delays) do
          local why = refused(function(timers)
            timers[start](timers, "key", "tick", 100, initial)
          end)
          assert.matches("initial", why, 1, true)
        end
      end)
    end

    it("TMR-4 a refused start leaves the timer that has the key alone", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_single("key", "tick", 10)
        pcall(actor.timers.start_single, actor.timers, "key", "new", -1)
      end)

      kit():advance(10)

      assert.are.same({ { "tick", 10 } }, ticks)
    end)

    it("TMR-4 takes -0.0 and fractions, and fires no timer early", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_single("a", "negative zero", -0.0)
        actor.timers:start_single("b", "one and a half", 1.5)
      end)

      kit():advance(1)
      assert.are.same({ "negative zero" }, names(ticks))
      kit():advance(1)

      assert.are.same({ "negative zero", "one and a half" }, names(ticks))
      assert.is_true(ticks[2][2] >= 1.5)
    end)

    it("TMR-4 takes 2^31 ms and more", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_single("a", "2^31", 2 ^ 31)
        actor.timers:start_single("b", "2^32 + 1", 2 ^ 32 + 1)
        actor.timers:start_fixed_rate("c", "2^40", 2 ^ 40)
        actor.timers:start_single("d", "never", 2 ^ 53)
        actor.timers:start_single("e", "never", 1e300)
        actor.timers:start_single("f", "never", math.maxinteger)
      end)

      kit():advance(2 ^ 41)

      assert.are.same({
        { "2^31", 2 ^ 31 }, { "2^32 + 1", 2 ^ 32 + 1 }, { "2^40", 2 ^ 40 }, { "2^40", 2 ^ 41 },
      }, ticks)
    end)
  end)

  describe("order", function()
    it("TMR-5 timers of equal time fire in the order they were started", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        actor.timers:start_single("a", "first", 100)
      end)
      kit():advance(40)
      ref:tell(function(actor)
        actor.timers:start_single("b", "second", 60)
        actor.timers:start_single("c", "third", 60)
      end)

      kit():advance(60)

      assert.are.same({ { "first", 100 }, { "second", 100 }, { "third", 100 } }, ticks)
    end)

    it("TMR-5 timers of different actors and of the system share one order", function()
      local order = {}
      for i = 1, 9, 2 do
        local ref = kit().system:spawn(function(actor, message)
          if message == "tick" then order[#order + 1] = i
          else actor.timers:start_single("key", "tick", 100)
          end
        end)
        ref:tell("start")
        kit():settle()
        kit().system:go(function()
          troupe.sleep(100)
          order[#order + 1] = i + 1
        end)
        kit():settle()
      end

      kit():advance(100)

      assert.are.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, order)
    end)

    it("TMR-5 order is by due time, not by start", function()
      local ticks = {}
      local ref = spawn_recorder(ticks)
      ref:tell(function(actor)
        for _, delay in ipairs { 50, 10, 40, 20, 30 } do
          actor.timers:start_single(delay, delay, delay)
        end
      end)

      kit():advance(1000)

      assert.are.same({ 10, 20, 30, 40, 50 }, times(ticks))
      assert.are.same({ 10, 20, 30, 40, 50 }, names(ticks))
    end)

    it("TMR-5 random starts, replacements and cancels fire as a sorted list says", function()
      for seed = 1, 100 do
        math.randomseed(seed)
        local fired, pending, expected, started = {}, {}, {}, 0
        local ref = spawn_recorder(fired)

        local function start(key, delay)
          started = started + 1
          local serial = started
          for i, timer in ipairs(pending) do
            if timer.key == key then table.remove(pending, i) break end
          end
          table.insert(pending, { key = key, due = kit():now() + delay, serial = serial })
          ref:tell(function(actor) actor.timers:start_single(key, serial, delay) end)
        end

        local function cancel(key)
          for i, timer in ipairs(pending) do
            if timer.key == key then table.remove(pending, i) break end
          end
          ref:tell(function(actor) actor.timers:cancel(key) end)
        end

        local function advance(ms)
          table.sort(pending, function(a, b)
            return a.due < b.due or a.due == b.due and a.serial < b.serial
          end)
          while pending[1] and pending[1].due <= kit():now() + ms do
            local timer = table.remove(pending, 1)
            table.insert(expected, { timer.serial, timer.due })
          end
          kit():advance(ms)
        end

        for _ = 1, 100 do
          local dice = math.random(10)
          if dice <= 6 then start(math.random(20), math.random(0, 15))
          elseif dice <= 8 then cancel(math.random(20))
          else advance(math.random(0, 5))
          end
          kit():settle()
          if dice <= 8 then advance(0) end
        end
        advance(20)

        assert.are.same(expected, fired, "seed " .. seed)
      end
    end)
  end)

  describe("of the system", function()
    it("TMR-6 schedule_once calls its function once, after the delay", function()
      local called_at = {}
      kit().system:schedule_once(100, function() called_at[#called_at + 1] = kit():now() end)

      kit():advance(99)
      assert.are.same({}, called_at)
      kit():advance(1000)

      assert.are.same({ 100 }, called_at)
    end)

    it("TMR-6 schedule_once of 0 calls in a turn of its own", function()
      local called = false
      kit().system:schedule_once(0, function() called = true end)

      assert.is_false(called)
      kit():settle()
      assert.is_true(called)
    end)

    it("TMR-6 schedule_every calls its function every interval, without drift", function()
      local called_at = {}
      local ticking = kit().system:schedule_every(0.1, function()
        called_at[#called_at + 1] = kit():now()
      end)

      kit():advance(1000)

      assert.equal(10000, #called_at)
      ticking:cancel()
    end)

    it("TMR-6 cancel is true when it prevented the call, and false after that", function()
      local called = false
      local handle = kit().system:schedule_once(100, function() called = true end)
      kit():advance(50)

      assert.is_true(handle:cancel())
      assert.is_false(handle:cancel())
      kit():advance(1000)

      assert.is_false(called)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("TMR-6 cancel is false when the function has been called", function()
      local handle = kit().system:schedule_once(100, function() end)

      kit():advance(100)

      assert.is_false(handle:cancel())
    end)

    it("TMR-6 cancel prevents a call that is due at the same instant", function()
      local second, prevented
      local called = false
      kit().system:schedule_once(100, function() prevented = second:cancel() end)
      second = kit().system:schedule_once(100, function() called = true end)

      kit():advance(100)

      assert.is_true(prevented)
      assert.is_false(called)
    end)

    it("TMR-6 cancel ends a repeating timer from outside and from its own function", function()
      local outer, inner = 0, 0
      local from_outside = kit().system:schedule_every(10, function() outer = outer + 1 end)
      local from_inside, prevented
      from_inside = kit().system:schedule_every(10, function()
        inner = inner + 1
        if inner == 2 then prevented = from_inside:cancel() end
      end)

      kit():advance(35)
      assert.is_true(from_outside:cancel())
      kit():advance(100)

      assert.equal(3, outer)
      assert.equal(2, inner)
      assert.is_true(prevented)
      assert.is_false(from_inside:cancel())
    end)

    it("TMR-6 cancel after the system has terminated is false", function()
      local handle = kit().system:schedule_every(100, function() end)
      kit().system:terminate()

      assert.is_false(handle:cancel())
    end)

    it("TMR-6 logs what a function raises, and a repeating one goes on", function()
      local calls, neighbour = 0, 0
      local failing = kit().system:schedule_every(10, function()
        calls = calls + 1
        error("no disk", 0)
      end)
      local fine = kit().system:schedule_every(10, function() neighbour = neighbour + 1 end)

      kit():advance(30)
      failing:cancel()
      fine:cancel()

      assert.equal(3, calls)
      assert.equal(3, neighbour)
      assert.equal(3, #kit().logs)
      assert.matches("no disk", kit().logs[1].message, 1, true)
      assert.equal("error", kit().logs[1].level)
    end)

    it("TMR-6 keeps a timer whose handle was dropped", function()
      local called = false
      kit().system:schedule_once(100, function() called = true end)

      collectgarbage()
      collectgarbage()
      kit():advance(100)

      assert.is_true(called)
    end)

    it("TMR-6 refuses bad delays and intervals, and what is no function", function()
      local system = kit().system
      local function noop() end

      for _, delay in ipairs { -1, 0 / 0, 1 / 0, "10", {} } do
        assert.error_matches(function() system:schedule_once(delay, noop) end, "delay")
        assert.error_matches(function() system:schedule_every(delay, noop) end, "interval")
      end
      assert.error_matches(function() system:schedule_every(0, noop) end, "interval")
      assert.error_matches(function() system:schedule_once(10, "noop") end, "function")
      assert.error_matches(function() system:schedule_every(10) end, "function")
      assert.equal(0, system:stats().timers)
    end)

    it("TMR-6 leaves nothing behind 10,000 timers, called or cancelled", function()
      local system = kit().system
      local function rounds(n)
        for i = 1, n do
          local payload = { i }
          system:schedule_once(0, function() return payload end)
          system:schedule_once(1e6, function() return payload end):cancel()
          if i % 100 == 0 then kit():settle() end
        end
        kit():settle()
        collectgarbage()
        collectgarbage()
        return system:stats()
      end
      local before = rounds(100)

      local after = rounds(5000)

      assert.equal(0, after.timers)
      assert.equal(before.anchored, after.anchored)
      assert.equal(before.engine_bytes, after.engine_bytes)
    end)
  end)
end)
