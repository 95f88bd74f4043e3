local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("ask", function()
  local kit = new_kit.each(before_each, after_each)

  local function echo(actor, message) actor:reply(message) end
  local function mute() end

  local function slow_echo(ms)
    return function(actor, message)
      troupe.sleep(ms)
      actor:reply(message)
    end
  end

  local function collect_dead_letters()
    local letters = {}
    kit().system.events:subscribe(function(event)
      letters[#letters + 1] = event.message
    end, "dead_letter")
    return letters
  end

  describe("the reply and the budget", function()
    it("ASK-1 gives the reply and no error", function()
      local value, err = kit().system:spawn(echo):ask("hello")

      assert.equal("hello", value)
      assert.is_nil(err)
    end)

    it("ASK-1 waits for 5000 ms unless told otherwise", function()
      local target = kit().system:spawn(mute)
      local answer = kit():async(function() return target:ask("hello") end)

      kit():advance(4999)
      assert.equal("waiting", answer:status())

      kit():advance(1)
      local value, err = answer:await()
      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    end)

    it("ASK-1 waits for as long as it is told", function()
      local target = kit().system:spawn(slow_echo(59999))

      assert.equal("hello", (target:ask("hello", 60000)))
      assert.equal(59999, kit():now())
    end)

    it("ASK-1 refuses a timeout that is no positive finite number and sends nothing", function()
      local received = {}
      local target = kit().system:spawn(function(_, message) received[#received + 1] = message end)

      for _, timeout in ipairs { 0, -0.0, -1, 0 / 0, 1 / 0, -1 / 0, "50", false, true, {} } do
        assert.error_matches(function() target:ask("hello", timeout) end, "timeout")
      end

      kit():settle()
      assert.are.same({}, received)
      assert.equal(0, kit().system:stats().asks)
    end)

    it("ASK-1 takes budgets beyond 2^31 ms", function()
      local target = kit().system:spawn(mute)

      for _, timeout in ipairs { 2 ^ 31, 2 ^ 53, 1e300, math.maxinteger } do
        local answer = kit():async(function() return target:ask("hello", timeout) end)
        kit():advance(2 ^ 31 - 1)
        assert.equal("waiting", answer:status())
        answer:cancel()
      end
    end)

    it("ASK-1 counts fractions of a millisecond", function()
      local target = kit().system:spawn(mute)
      local answer = kit():async(function() return target:ask("hello", 1.5) end)

      kit():advance(1)
      assert.equal("waiting", answer:status())

      kit():advance(1)
      assert.equal("done", answer:status())
    end)
  end)

  describe("where one can ask", function()
    it("ASK-2 waits in a handler while other actors run", function()
      local order = {}
      local target = kit().system:spawn(slow_echo(10))
      local asker = kit().system:spawn(function()
        local answer = target:ask("answer")
        order[#order + 1] = answer
      end)
      local other = kit().system:spawn(function(_, message) order[#order + 1] = message end)

      asker:tell("go")
      kit():settle()
      other:tell("meanwhile")
      kit():advance(10)

      assert.are.same({ "meanwhile", "answer" }, order)
    end)

    it("ASK-2 takes the next message of an asking actor after the answer", function()
      local order = {}
      local target = kit().system:spawn(slow_echo(10))
      local asker = kit().system:spawn(function(_, message)
        order[#order + 1] = "begin " .. message
        target:ask(message)
        order[#order + 1] = "end " .. message
      end)

      asker:tell("a")
      asker:tell("b")
      kit():advance(20)

      assert.are.same({ "begin a", "end a", "begin b", "end b" }, order)
    end)

    it("ASK-2 waits in a task", function()
      local target = kit().system:spawn(slow_echo(10))
      local task = kit():async(function() return (target:ask("hello")) end)

      kit():settle()
      assert.equal("waiting", task:status())

      kit():advance(10)
      assert.equal("hello", task:await())
    end)

    it("ASK-2 waits in a coroutine of the user's own", function()
      local target = kit().system:spawn(echo)
      local answers = {}

      coroutine.wrap(function()
        answers[1] = target:ask("first")
        answers[2] = target:ask("second")
      end)()

      assert.are.same({}, answers)
      kit():settle()
      assert.are.same({ "first", "second" }, answers)
    end)

    it("ASK-2 waits in a coroutine that another coroutine of the user's started", function()
      local target = kit().system:spawn(echo)
      local order = {}

      coroutine.wrap(function()
        coroutine.wrap(function()
          target:ask("hello")
          order[#order + 1] = "inner"
        end)()
        target:ask("hello")
        order[#order + 1] = "outer"
      end)()
      kit():settle()

      assert.are.same({ "inner", "outer" }, order)
    end)

    it("ASK-2 times out in a coroutine of the user's own", function()
      local target = kit().system:spawn(mute)
      local failure

      coroutine.wrap(function()
        local _, err = target:ask("hello", 100)
        failure = err
      end)()
      kit():advance(99)
      assert.is_nil(failure)
      kit():advance(1)

      assert.is_true(troupe.is_error(failure, "AskTimeoutError"))
    end)

    it("ASK-2 lets a coroutine of the user's own yield to its owner between its asks", function()
      local target = kit().system:spawn(echo)
      local answers = {}
      local co = coroutine.create(function()
        answers[1] = target:ask("first")
        answers[2] = coroutine.yield()
        answers[3] = target:ask("third")
      end)

      coroutine.resume(co)
      kit():settle()
      coroutine.resume(co, "second")
      kit():settle()

      assert.are.same({ "first", "second", "third" }, answers)
      assert.equal("dead", coroutine.status(co))
    end)

    it("ASK-2 raises in a waiting coroutine that its owner resumes, and forgets it", function()
      local target = kit().system:spawn(slow_echo(10))
      local co = coroutine.create(function() target:ask("hello") end)
      coroutine.resume(co)
      kit():settle()

      local ok, why = coroutine.resume(co)
      kit():advance(100)

      assert.is_false(ok)
      assert.matches("resumed from outside", tostring(why), 1, true)
      assert.equal(0, kit().system:stats().parked)
    end)

    it("ASK-2 forgets a waiting coroutine that its owner closes", function()
      local target = kit().system:spawn(slow_echo(10))
      local co = coroutine.create(function() target:ask("hello") end)
      coroutine.resume(co)
      kit():settle()

      assert.is_true(coroutine.close(co))
      kit():advance(100)

      assert.equal(0, kit().system:stats().asks)
      assert.equal(0, kit().system:stats().parked)
    end)

    it("ASK-2 goes on in a coroutine of the user's own when its system terminates", function()
      local silent = kit().system:spawn(mute)
      local failure
      coroutine.wrap(function() failure = select(2, silent:ask("hello", 60000)) end)()

      kit().system:terminate()

      assert.is_true(troupe.is_error(failure))
    end)

    it("ASK-2 logs what a coroutine of the user's own raises after its answer", function()
      local target = kit().system:spawn(echo)
      coroutine.wrap(function()
        target:ask("hello")
        error("lost thread")
      end)()

      kit():settle()

      local record = kit().logs[#kit().logs]
      assert.equal("error", record.level)
      assert.matches("lost thread", record.message, 1, true)
      assert.equal("still there", (target:ask("still there")))
    end)

    it("ASK-2 drives the loop on the main chunk until the answer is there", function()
      local target = kit().system:spawn(slow_echo(50))

      assert.equal("hello", (target:ask("hello")))
      assert.equal(50, kit():now())
    end)

    it("ASK-2 drives no further than the answer", function()
      local ticks = 0
      local ticking = kit().system:schedule_every(20, function() ticks = ticks + 1 end)

      kit().system:spawn(slow_echo(50)):ask("hello")

      assert.equal(2, ticks)
      ticking:cancel()
    end)

    it("ASK-2 waits behind pcall, metamethods and iterators", function()
      local target = kit().system:spawn(slow_echo(1))
      local function ask() return (target:ask("answer")) end
      local places = {
        ["pcall"] = function() return select(2, pcall(ask)) end,
        ["xpcall"] = function() return select(2, xpcall(ask, debug.traceback)) end,
        ["__index"] = function() return setmetatable({}, { __index = ask }).field end,
        ["__add"] = function() return setmetatable({}, { __add = ask }) + 1 end,
        ["__call"] = function() return (setmetatable({}, { __call = ask })()) end,
        ["__concat"] = function() return setmetatable({}, { __concat = ask }) .. "" end,
        ["__lt"] = function()
          local t = setmetatable({}, { __lt = ask })
          return t < t and "answer"
        end,
        ["__close"] = function()
          local answer
          do
            local _ <close> = setmetatable({}, { __close = function() answer = ask() end })
          end
          return answer
        end,
        ["__pairs"] = function()
          local t = setmetatable({}, { __pairs = function() return next, { ask() } end })
          local answer
          for _, value in pairs(t) do answer = value end
          return answer
        end,
        ["an iterator"] = function()
          local asked
          for answer in function() return not asked and ask() or nil end do asked = answer end
          return asked
        end,
      }

      for place, try in pairs(places) do
        local asker = kit().system:spawn(function(actor) actor:reply(try()) end)
        assert.equal("answer", (asker:ask("go")), place)
      end
    end)
  end)

  describe("where one cannot ask", function()
    local function asked_from_handler(place)
      local received = {}
      local target = kit().system:spawn(function(actor, message)
        received[#received + 1] = message
        actor:reply(message)
      end)
      local asker = kit().system:spawn(function(actor)
        local ok, why = pcall(place, function() return target:ask("forbidden") end)
        actor:reply({ ok = ok, why = why, after = (target:ask("allowed")) })
      end)
      local outcome = asker:ask("go")
      assert.are.same({ "allowed" }, received)
      return outcome
    end

    it("ASK-2 raises in a coroutine inside a handler, and sends nothing", function()
      local outcome = asked_from_handler(function(ask) coroutine.wrap(ask)() end)

      assert.is_false(outcome.ok)
      assert.matches("ask", tostring(outcome.why), 1, true)
      assert.matches("coroutine", tostring(outcome.why), 1, true)
      assert.equal("allowed", outcome.after)
    end)

    it("ASK-2 raises in a coroutine that a handler resumes but did not make", function()
      local target = kit().system:spawn(echo)
      local made_outside = coroutine.wrap(function() return pcall(target.ask, target, "hello") end)
      local asker = kit().system:spawn(function(actor)
        local ok, why = made_outside()
        actor:reply({ ok = ok, why = why })
      end)

      local outcome = asker:ask("go")

      assert.is_false(outcome.ok)
      assert.matches("coroutine", tostring(outcome.why), 1, true)
    end)

    it("ASK-2 raises in a coroutine inside a task", function()
      local target = kit().system:spawn(echo)
      local task = kit():async(function()
        return pcall(coroutine.wrap(function() target:ask("hello") end))
      end)

      local ok, why = task:await()

      assert.is_false(ok)
      assert.matches("coroutine", tostring(why), 1, true)
    end)

    local boundaries = {
      ["table.sort"] = function(ask) table.sort({ 1, 2 }, ask) end,
      ["string.gsub"] = function(ask) string.gsub("x", "x", ask) end,
      ["__tostring"] = function(ask) tostring(setmetatable({}, { __tostring = ask })) end,
      ["require"] = function(ask)
        package.preload["spec.asks_while_loading"] = ask
        require "spec.asks_while_loading"
      end,
    }
    for name, place in pairs(boundaries) do
      it("ASK-2 raises behind " .. name .. ", and sends nothing", function()
        local outcome = asked_from_handler(place)

        assert.is_false(outcome.ok)
        assert.matches("ask", tostring(outcome.why), 1, true)
        assert.matches("a C function", tostring(outcome.why), 1, true)
        assert.equal("allowed", outcome.after)
      end)
    end

    it("ASK-2 raises behind table.sort in a task and in a coroutine of the user's own", function()
      local target = kit().system:spawn(echo)
      local function sort_by_asking()
        return pcall(table.sort, { 1, 2 }, function() return target:ask("hello") end)
      end

      local _, in_task = kit():async(sort_by_asking):await()
      local _, in_coroutine = coroutine.wrap(sort_by_asking)()

      assert.matches("a C function", tostring(in_task), 1, true)
      assert.matches("a C function", tostring(in_coroutine), 1, true)
    end)

    it("ASK-2 raises in a finalizer that runs in a handler", function()
      local why
      local target = kit().system:spawn(echo)
      local asker = kit().system:spawn(function(actor)
        setmetatable({}, {
          __gc = function()
            local _, message = pcall(target.ask, target, "hello")
            why = message
          end,
        })
        collectgarbage()
        actor:reply("alive")
      end)

      assert.equal("alive", (asker:ask("go")))
      assert.matches("a C function", tostring(why), 1, true)
    end)

    it("ASK-2 raises in an event's function, which may not wait", function()
      local why
      local target = kit().system:spawn(echo)
      kit().system.events:subscribe(function()
        why = select(2, pcall(target.ask, target, "hello"))
      end, "actor_stopped")

      kit().system:spawn(function() end):stop()
      kit():settle()

      assert.matches("may not wait", tostring(why), 1, true)
    end)

    it("ASK-2 raises on the main chunk while the loop already runs: in a log function", function()
      local target, ok, why
      kit { log = function() ok, why = pcall(target.ask, target, "hello") end }
      target = kit().system:spawn(echo)
      kit().system:go(function() error("boom", 0) end)

      kit():settle()

      assert.is_false(ok)
      assert.matches("runs already", tostring(why), 1, true)
    end)
  end)

  describe("pcall and raising", function()
    it("ASK-2 gives pcall what is raised after the answer", function()
      local target = kit().system:spawn(slow_echo(10))
      local asker = kit().system:spawn(function(actor)
        local ok, reason = pcall(function() error(target:ask("reason"), 0) end)
        actor:reply({ ok, reason })
      end)

      assert.are.same({ false, "reason" }, (asker:ask("go")))
    end)

    it("ASK-2 fails the actor when its handler raises after an ask inside pcall", function()
      local reason, incarnations = nil, 0
      local target = kit().system:spawn(slow_echo(10))
      local asker = kit().system:spawn({
        pre_start = function() incarnations = incarnations + 1 end,
        receive = function(actor, message)
          local _, answer = pcall(target.ask, target, message)
          if message == "boom" then error(answer, 0) end
          actor:reply(answer)
        end,
      })
      kit().system.events:subscribe(function(event) reason = event.reason end, "actor_failed")

      asker:tell("boom")
      local after = asker:ask("again")

      assert.equal("boom", reason)
      assert.equal(2, incarnations)
      assert.equal("again", after)
    end)

    it("ASK-2 closes a handler's variables when it raises after an ask", function()
      local closed_with
      local target = kit().system:spawn(slow_echo(10))
      local asker = kit().system:spawn(function()
        local _ <close> = setmetatable({}, { __close = function(_, err) closed_with = err end })
        target:ask("hello")
        error("boom", 0)
      end)

      asker:tell("go")
      kit():advance(10)

      assert.equal("boom", closed_with)
    end)

    it("ASK-8 ends with an actor that stops, whose variables are closed once", function()
      local trace = {}
      local target = kit().system:spawn(mute)
      local parent = kit().system:spawn({
        pre_start = function(actor)
          actor.asker = actor:spawn({
            receive = function()
              local _ <close> = setmetatable({}, {
                __close = function() trace[#trace + 1] = "close" end,
              })
              target:ask("hello", 60000)
              trace[#trace + 1] = "resumed"
            end,
            post_stop = function() trace[#trace + 1] = "post_stop" end,
          })
          actor.asker:tell("go")
        end,
        receive = function(actor) actor:stop(actor.asker) end,
      })
      kit():advance(10)
      assert.equal(1, kit().system:stats().asks)

      parent:tell("stop it")
      kit():settle()

      assert.are.same({ "close", "post_stop" }, trace)
      assert.equal(0, kit().system:stats().asks)
      assert.equal(0, kit().system:stats().timers)
      assert.equal(0, kit().system:stats().parked)
    end)

    it("ASK-8 leaves no timer behind an asker that was killed, whoever has the request", function()
      local kept = {}
      local busy = kit().system:spawn(function(actor)
        kept[#kept + 1] = actor.sender
        troupe.sleep(10)
      end)
      local askers = {}
      for i = 1, 3 do
        askers[i] = kit().system:spawn(function() busy:ask("hello", 60000) end)
        askers[i]:tell("ask")
      end
      kit():advance(10) -- the first has been handled, the second is in hand, the third is queued
      for _, asker in ipairs(askers) do asker:kill() end

      kit().system:run()

      assert.equal(3, #kept)
      assert.equal(30, kit():now())
    end)

    it("ASK-2 ends an ask of oneself by its timeout", function()
      local reached
      local loner = kit().system:spawn(function(actor, message)
        if message == "inner" then return end
        local _, err = actor.ref:ask("inner", 1000)
        reached = { at = kit():now(), timed_out = troupe.is_error(err, "AskTimeoutError") }
      end)

      loner:tell("outer")
      kit():advance(5000)

      assert.are.same({ at = 1000, timed_out = true }, reached)
    end)

    it("ASK-2 ends two actors that ask each other by the inner timeout", function()
      local first, second
      first = kit().system:spawn(function(actor, message)
        if message == "back" then return actor:reply("too late") end
        actor:reply((second:ask("question", 5000)))
      end)
      second = kit().system:spawn(function(actor)
        local answer, err = first:ask("back", 1000)
        actor:reply(answer or err.name)
      end)

      assert.equal("AskTimeoutError", (first:ask("go")))
      assert.equal(1000, kit():now())
    end)
  end)

  describe("the request", function()
    it("ASK-3 hands over the very message, unchanged", function()
      local message = setmetatable({ "item" }, { __newindex = error })
      local received
      local target = kit().system:spawn(function(actor, m)
        received = m
        actor:reply()
      end)

      target:ask(message)

      assert.is_true(rawequal(message, received))
      assert.equal("item", rawget(received, 1))
      assert.equal(1, next(received))
      assert.is_nil(next(received, 1))
    end)

    it("ASK-3 gives the reply ref as the sender", function()
      local target = kit().system:spawn(function(actor) actor.sender:tell("through the sender") end)

      assert.equal("through the sender", (target:ask("hello")))
    end)

    it("ASK-3 gives every ask a reply ref of its own", function()
      local senders = {}
      local target = kit().system:spawn(function(actor)
        senders[#senders + 1] = actor.sender
        actor:reply()
      end)

      target:ask("first")
      target:ask("second")

      assert.is_false(senders[1] == senders[2])
    end)

    it("ASK-4 takes the first reply and drops the others in silence", function()
      local letters = collect_dead_letters()
      local target = kit().system:spawn(function(actor)
        actor:reply("first")
        actor:reply("second")
        actor:fail("third")
      end)

      local value, err = target:ask("hello")
      kit():settle()

      assert.equal("first", value)
      assert.is_nil(err)
      assert.are.same({}, letters)
      assert.are.same({}, kit().logs)
    end)

    it("ASK-4 drops a reply after the timeout in silence", function()
      local letters = collect_dead_letters()
      local target = kit().system:spawn(slow_echo(100))
      local received = {}
      local asker = kit().system:spawn(function(_, message)
        received[#received + 1] = message
        if message == "go" then target:ask("late", 50) end
      end)

      asker:tell("go")
      kit():advance(1000)

      assert.are.same({ "go" }, received)
      assert.are.same({}, letters)
      assert.are.same({}, kit().logs)
    end)

    it("ASK-4 shows no late reply to the next incarnation of the asker", function()
      local letters = collect_dead_letters()
      local target = kit().system:spawn(slow_echo(100))
      local received = {}
      local asker = kit().system:spawn(function(_, message)
        received[#received + 1] = message
        if message == "go" then error(select(2, target:ask("late", 50))) end
      end)

      asker:tell("go")
      asker:tell("next")
      kit():advance(1000)

      assert.are.same({ "go", "next" }, received)
      assert.are.same({}, letters)
    end)

    it("ASK-4 settles once when reply, failure, cancel and stop race the timeout", function()
      local function permute(list, n, visit)
        if n == 0 then return visit(list) end
        for i = 1, n do
          list[i], list[n] = list[n], list[i]
          permute(list, n - 1, visit)
          list[i], list[n] = list[n], list[i]
        end
      end

      permute({ "reply", "fail", "cancel", "stop", "ask" }, 5, function(order)
        local slot, task
        local outcomes = 0
        local target = kit().system:spawn(function(actor) slot = actor.sender end)
        local act = {
          reply = function() slot:tell("reply") end,
          fail = function() slot:tell(troupe.error("Broken", "no disk")) end,
          cancel = function() task:cancel() end,
          stop = function() target:stop() end,
        }
        for _, what in ipairs(order) do
          if what == "ask" then
            task = kit():async(function()
              target:ask("hello", 10)
              outcomes = outcomes + 1
            end)
            kit():settle()
          else
            kit().system:schedule_once(10, act[what])
          end
        end

        kit():advance(20)

        assert.equal(1, outcomes, table.concat(order, " "))
        assert.equal(0, kit().system:stats().asks)
      end)
    end)
  end)

  describe("reply and fail", function()
    it("ASK-5 fails the ask with exactly the value given to fail", function()
      local reason = { code = 7 }
      local value, err = kit().system:spawn(function(actor) actor:fail(reason) end):ask("hello")

      assert.is_nil(value)
      assert.is_true(rawequal(reason, err))
    end)

    it("ASK-5 fails the ask when the reply is an error value", function()
      local broken = troupe.error("Broken", "no disk")
      local value, err = kit().system:spawn(function(actor) actor:reply(broken) end):ask("hello")

      assert.is_nil(value)
      assert.is_true(rawequal(broken, err))
    end)

    it("ASK-5 takes a table that only looks like an error as a reply", function()
      local lookalike = { name = "Broken", message = "no disk" }
      local target = kit().system:spawn(function(actor) actor:reply(lookalike) end)

      local value, err = target:ask("hello")

      assert.is_true(rawequal(lookalike, value))
      assert.is_nil(err)
    end)

    it("ASK-5 tells a reply of nil from a failure by the second result", function()
      local target = kit().system:spawn(function(actor, message)
        if message == "reply" then actor:reply(nil) else actor:fail("no disk") end
      end)

      local replied, no_error = target:ask("reply")
      local failed, reason = target:ask("fail")

      assert.is_nil(replied)
      assert.is_nil(no_error)
      assert.is_nil(failed)
      assert.equal("no disk", reason)
    end)

    it("ASK-5 gives a reply of nothing and of false as they are", function()
      local target = kit().system:spawn(function(actor, message)
        if message == "nothing" then actor:reply() else actor:reply(false) end
      end)

      local nothing, first_err = target:ask("nothing")
      local no, second_err = target:ask("false")

      assert.is_nil(nothing)
      assert.is_nil(first_err)
      assert.is_false(no)
      assert.is_nil(second_err)
    end)

    it("ASK-5 refuses to fail with nil", function()
      local ok
      local target = kit().system:spawn(function(actor)
        ok = pcall(actor.fail, actor, nil)
        actor:reply("handled")
      end)

      assert.equal("handled", (target:ask("hello")))
      assert.is_false(ok)
    end)

    it("ASK-5 replies in each incarnation", function()
      local target = kit().system:spawn(function(actor, message)
        actor:reply(message)
        if message == "break" then error "broken" end
      end)
      local answers = {}

      for i = 1, 10 do
        answers[i] = target:ask(i)
        target:ask("break")
      end

      assert.are.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, answers)
    end)

    it("ASK-5 replies after a wait to the one who asked", function()
      local target = kit().system:spawn(slow_echo(10))
      local answers = {}
      for i = 1, 3 do
        kit():async(function() answers[i] = target:ask("answer " .. i) end)
      end

      kit():advance(30)

      assert.are.same({ "answer 1", "answer 2", "answer 3" }, answers)
    end)

    it("ASK-6 names the target's path and the budget", function()
      kit()
      local _, err = kit().system:spawn(mute, "silent"):ask("hello", 250)

      assert.is_true(troupe.is_error(err, "AskTimeoutError"))
      assert.matches("troupe://demo/user/silent", err.message, 1, true)
      assert.matches("250", err.message, 1, true)
      assert.equal(250, kit():now())
    end)

    it("ASK-6 lets a reply at 49 ms pass a budget of 50, and none at 51", function()
      local in_time = kit().system:spawn(slow_echo(49))
      local late = kit().system:spawn(slow_echo(51))

      local value = in_time:ask("hello", 50)
      local _, err = late:ask("hello", 50)

      assert.equal("hello", value)
      assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    end)
  end)

  describe("of an actor that stops", function()
    local function fails_as_stopped(target)
      local before = kit():now()
      local value, err = target:ask("hello", 60000)
      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "ActorStoppedError"))
      assert.equal(before, kit():now())
    end

    it("ASK-7 fails at once when the target has stopped", function()
      local target = kit().system:spawn(echo)
      target:stop()
      kit():settle()

      fails_as_stopped(target)
    end)

    it("ASK-7 fails at once when the target's system has terminated", function()
      local target = kit().system:spawn(echo)
      kit().system:terminate()

      local value, err = target:ask("hello", 60000)

      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "SystemTerminatedError"))
      assert.equal(0, kit():now())
    end)

    it("ASK-7 fails when the target stops with the request behind the stop", function()
      local handled = 0
      local target = kit().system:spawn(function() handled = handled + 1 end)
      for i = 1, 10000 do target:tell(i) end
      target:stop()

      fails_as_stopped(target)
      kit():settle()
      assert.equal(10000, handled)
    end)

    it("ASK-7 fails when the target stops with the request in its mailbox", function()
      local target = kit().system:spawn(function(actor, message)
        if message == "stop" then actor:stop() else actor:reply(message) end
      end)
      target:tell("stop")

      fails_as_stopped(target)
    end)

    it("ASK-7 fails when the target stops in the handler of the request", function()
      fails_as_stopped(kit().system:spawn(function(actor) actor:stop() end))
    end)

    it("ASK-7 fails when the target's failure stops it", function()
      fails_as_stopped(kit().system:spawn(function() error("boom", 0) end, "fragile", {
        supervisor_strategy = troupe.stopping_strategy,
      }))
    end)

    it("ASK-7 fails when the target is stopped hard while its handler waits", function()
      local parent = kit().system:spawn(function(actor, message)
        if message == "stop" then return actor:stop(actor.worker) end
        actor.worker = actor:spawn(slow_echo(1000))
        actor:reply(actor.worker)
      end)
      local worker = parent:ask("spawn")
      local failed_at
      kit():async(function()
        local _, err = worker:ask("hello", 60000)
        assert.is_true(troupe.is_error(err, "ActorStoppedError"))
        failed_at = kit():now()
      end)

      kit():advance(10)
      parent:tell("stop")
      kit():advance(5000)

      assert.equal(10, failed_at)
    end)

    it("ASK-7 fails when the routee that a router chose stops with the request queued", function()
      local pool = kit().system:spawn(troupe.Router.round_robin(1, function(actor)
        troupe.sleep(10)
        actor:stop()
      end))
      pool:tell("stop")

      local _, err = pool:ask("hello", 60000)

      assert.is_true(troupe.is_error(err, "ActorStoppedError"))
      assert.equal(10, kit():now())
    end)

    it("ASK-7 fails when it is sent while the target's post_stop waits", function()
      local target = kit().system:spawn({
        receive = echo,
        post_stop = function() troupe.sleep(20) end,
      })
      target:stop()
      kit():advance(10)

      local _, err = target:ask("hello", 60000)

      assert.is_true(troupe.is_error(err, "ActorStoppedError"))
      assert.is_true(kit():now() <= 20)
    end)

    it("ASK-7 makes no dead letter of a request whose asker was told", function()
      local letters = collect_dead_letters()
      local target = kit().system:spawn(function(actor) actor:stop() end)
      target:tell("stop")

      target:ask("in the mailbox")
      target:ask("after the stop")
      kit():settle()

      assert.are.same({}, letters)
    end)

    it("ASK-7 keeps a reply that came before the stop", function()
      local target = kit().system:spawn(function(actor, message)
        actor:reply(message)
        actor:stop()
      end)

      assert.equal("hello", (target:ask("hello")))
    end)

    it("ASK-7 leaves a request alone that the target had passed on", function()
      local worker = kit().system:spawn(slow_echo(50))
      local front = kit().system:spawn(function(actor, message)
        worker:tell(message, actor.sender)
      end)
      local answer = kit():async(function() return (front:ask("hello")) end)
      kit():settle()

      front:stop()
      kit():advance(50)

      assert.equal("hello", answer:await())
    end)

    it("ASK-7 leaves a request alone that was passed on in the handler that stops", function()
      local worker = kit().system:spawn(slow_echo(50))
      local front = kit().system:spawn(function(actor, message)
        worker:tell(message, actor.sender)
        actor:stop()
      end)

      assert.equal("hello", (front:ask("hello")))
    end)

    it("ASK-7 lets the request in hand time out when the target restarts", function()
      local target = kit().system:spawn(function() error("boom", 0) end)

      local _, err = target:ask("hello", 300)

      assert.is_true(troupe.is_error(err, "AskTimeoutError"))
      assert.equal(300, kit():now())
    end)

    it("ASK-7 keeps a queued request over a restart", function()
      local target = kit().system:spawn(function(actor, message)
        if message == "boom" then error("boom", 0) end
        actor:reply(message)
      end)
      target:tell("boom")

      assert.equal("hello", (target:ask("hello")))
    end)
  end)

  describe("what is left behind", function()
    it("ASK-8 leaves no timer and no slot behind a reply", function()
      kit().system:spawn(echo):ask("hello", 3600000)

      assert.equal(0, kit().system:stats().asks)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("ASK-8 keeps no memory of 10,000 asks", function()
      local target = kit().system:spawn(echo)
      local function ask(n)
        for _ = 1, n do target:ask({}, 3600000) end
        collectgarbage()
        collectgarbage()
        return kit().system:stats()
      end
      local before = ask(100)

      local after = ask(10000)

      assert.equal(before.engine_bytes, after.engine_bytes)
      assert.equal(before.anchored, after.anchored)
    end)

    it("ASK-8 keeps no memory of asks that timed out, failed or found nobody", function()
      local silent = kit().system:spawn(mute)
      local failing = kit().system:spawn(function(actor) actor:fail({}) end)
      local stopped = kit().system:spawn(echo)
      stopped:stop()
      local function ask(n)
        for _ = 1, n do
          silent:ask({}, 1)
          failing:ask({})
          stopped:ask({})
        end
        collectgarbage()
        collectgarbage()
        return kit().system:stats()
      end
      local before = ask(10)

      local after = ask(1000)

      assert.equal(before.engine_bytes, after.engine_bytes)
      assert.equal(before.anchored, after.anchored)
    end)

    it("ASK-8 holds 100,000 asks at once and forgets them all", function()
      local n = 100000
      local senders, sum = {}, 0
      local keeper = kit().system:spawn(function(actor, message)
        if message ~= "release" then
          senders[#senders + 1] = actor.sender
          return
        end
        for i, sender in ipairs(senders) do sender:tell(i) end
        senders = {}
      end)
      keeper:tell("release")
      kit():settle()
      local before = kit().system:stats()
      for i = 1, n do
        kit():async(function()
          local answer = keeper:ask(i)
          sum = sum + answer
        end)
      end
      kit():settle()
      assert.equal(n, kit().system:stats().asks)

      keeper:tell("release")
      kit():settle()

      assert.equal(n * (n + 1) // 2, sum)
      collectgarbage()
      collectgarbage()
      local after = kit().system:stats()
      for _, name in ipairs { "asks", "timers", "tasks", "parked", "queued", "anchored" } do
        assert.equal(before[name], after[name], name)
      end
    end)

    it("ASK-8 lets 100,000 asks time out at the same instant", function()
      local n, timed_out = 100000, 0
      local target = kit().system:spawn(mute)
      for _ = 1, n do
        kit():async(function()
          local _, err = target:ask("hello", 1000)
          if troupe.is_error(err, "AskTimeoutError") then timed_out = timed_out + 1 end
        end)
      end

      kit():advance(999)
      assert.equal(0, timed_out)
      kit():advance(1)

      assert.equal(n, timed_out)
      assert.equal(0, kit().system:stats().asks)
      assert.equal(0, kit().system:stats().timers)
    end)
  end)

  describe("the reply ref", function()
    it("ASK-9 gives the ref that answered as the third result", function()
      local target = kit().system:spawn(echo)

      local _, _, from = target:ask("hello")

      assert.is_true(from == target)
    end)

    it("ASK-9 names the actor that answered in place of the one asked", function()
      local worker = kit().system:spawn(echo)
      local front = kit().system:spawn(function(actor, message)
        worker:tell(message, actor.sender)
      end)

      local _, _, from = front:ask("hello")

      assert.is_true(from == worker)
    end)

    it("ASK-9 names the actor that told the reply ref in a handler", function()
      local teller = kit().system:spawn(function(_, reply_ref) reply_ref:tell("hello") end)
      local front = kit().system:spawn(function(actor) teller:tell(actor.sender) end)

      local value, _, from = front:ask("go")

      assert.equal("hello", value)
      assert.is_true(from == teller)
    end)

    it("ASK-10 renders as a path below temp", function()
      local rendered
      local target = kit().system:spawn(function(actor)
        rendered = { tostring(actor.sender), tostring(actor.sender.path), actor.sender.name }
        actor:reply()
      end)

      target:ask("hello")

      local n = rendered[1]:match("^troupe://demo/temp/ask%-(%d+)$")
      assert.are.same({
        "troupe://demo/temp/ask-" .. n, "troupe://demo/temp/ask-" .. n, "ask-" .. n,
      }, rendered)
    end)

    it("ASK-10 is found by no path: who was not given it cannot answer", function()
      local path
      local target = kit().system:spawn(function(actor)
        path = tostring(actor.sender.path)
        troupe.sleep(50)
        actor:reply("true")
      end)
      local answer = kit():async(function() return (target:ask("hello")) end)
      kit():settle()

      kit().system:actor_selection(path):tell("forged")
      kit().system:actor_selection("/temp/*"):tell("forged")

      assert.is_nil((kit().system:actor_selection(path):resolve_one(10)))
      assert.equal("true", answer:await())
    end)

    it("ASK-10 can be kept and told later from outside", function()
      local kept
      local target = kit().system:spawn(function(actor) kept = actor.sender end)
      local answer = kit():async(function() return (target:ask("hello")) end)
      kit():advance(100)

      kept:tell("later")

      assert.equal("later", answer:await())
    end)

    it("ASK-10 fails the ask when it is told an error value", function()
      local broken = troupe.error("Broken", "no disk")
      local target = kit().system:spawn(function(actor) actor.sender:tell(broken) end)

      local value, err = target:ask("hello")

      assert.is_nil(value)
      assert.is_true(rawequal(broken, err))
    end)

    it("ASK-10 takes a tell after the ask has settled, in silence", function()
      local letters = collect_dead_letters()
      local kept
      local target = kit().system:spawn(function(actor)
        kept = actor.sender
        actor:reply("first")
      end)
      target:ask("hello")

      assert.is_true(kept:tell("late"))
      kit():settle()

      assert.are.same({}, letters)
    end)
  end)

  describe("for a task", function()
    local function sum_later(a, b)
      troupe.sleep(10)
      return a + b
    end

    it("ASK-11 waits for a task in a handler", function()
      local task = kit():async(sum_later, 1, 2)
      local waiter = kit().system:spawn(function(actor) actor:reply(task:await()) end)

      assert.equal(3, (waiter:ask("go")))
    end)

    it("ASK-11 waits for a task in another task", function()
      local task = kit():async(sum_later, 1, 2)

      assert.equal(3, kit():async(function() return task:await() end):await())
    end)

    it("ASK-11 waits for a task in a coroutine of the user's own", function()
      local task = kit():async(sum_later, 1, 2)
      local sum

      coroutine.wrap(function() sum = task:await() end)()
      assert.is_nil(sum)
      kit():advance(10)

      assert.equal(3, sum)
    end)

    it("ASK-11 drives the loop on the main chunk until the task has ended", function()
      assert.equal(3, kit():async(sum_later, 1, 2):await())
      assert.equal(10, kit():now())
    end)

    it("ASK-11 raises on the main chunk when nothing is left that could end the wait", function()
      local first, second
      first = kit().system:go(function() return second:await() end)
      second = kit().system:go(function() return first:await() end)

      assert.error_matches(function() first:await() end, "nothing is left")
      first:cancel()
    end)

    it("ASK-11 raises in a coroutine inside a handler", function()
      local task = kit():async(sum_later, 1, 2)
      local waiter = kit().system:spawn(function(actor)
        local _, why = pcall(coroutine.wrap(function() task:await() end))
        actor:reply(tostring(why))
      end)

      local why = waiter:ask("go")

      assert.matches("await", why, 1, true)
      assert.matches("coroutine", why, 1, true)
    end)

    it("ASK-11 raises behind table.sort in a handler", function()
      local task = kit():async(sum_later, 1, 2)
      local waiter = kit().system:spawn(function(actor)
        local _, why = pcall(table.sort, { 1, 2 }, function() return task:await() end)
        actor:reply(tostring(why))
      end)

      local why = waiter:ask("go")

      assert.matches("await", why, 1, true)
      assert.matches("a C function", why, 1, true)
    end)
  end)
end)
