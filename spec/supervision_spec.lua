local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

describe("supervision", function()
  local kit = new_kit.each(before_each, after_each)

  local function collect(kind)
    local events = {}
    kit().system.events:subscribe(function(event) events[#events + 1] = event end, kind)
    return events
  end

  local function logged_failures()
    local records = {}
    for _, record in ipairs(kit().logs) do
      if record.level == "warn" or record.level == "error" then records[#records + 1] = record end
    end
    return records
  end

  -- Notes each message with the number of its incarnation: "a1". Raises on "boom".
  local function fragile(handled)
    local incarnation = 0
    return {
      pre_start = function() incarnation = incarnation + 1 end,
      receive = function(_, message)
        if message == "boom" then error("boom", 0) end
        handled[#handled + 1] = message .. incarnation
      end,
    }
  end

  local function tell_all(ref, messages)
    for _, message in ipairs(messages) do ref:tell(message) end
    kit():settle()
  end

  describe("strategies", function()
    it("SUP-1 take a directive by name, or a decider that names one", function()
      for directive, expected in pairs {
        resume = { "a1", "b1" }, restart = { "a1", "b2" }, stop = { "a1" }, escalate = { "a1" },
      } do
        for _, decider in ipairs { directive, function() return directive end } do
          local handled = {}
          local ref = kit().system:spawn(fragile(handled), nil, {
            supervisor_strategy = troupe.one_for_one { decider = decider },
          })

          tell_all(ref, { "a", "boom", "b" })

          assert.are.same(expected, handled, directive)
        end
      end
    end)

    it("SUP-1 give the decider the reason", function()
      local reasons = {}
      local ref = kit().system:spawn(fragile({}), nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function(reason)
            reasons[#reasons + 1] = reason
            return "restart"
          end,
        },
      })

      tell_all(ref, { "boom" })

      assert.are.same({ "boom" }, reasons)
    end)

    it("SUP-1 let a decider judge each failure anew", function()
      local handled = {}
      local verdicts = { "resume", "restart", "stop" }
      local ref = kit().system:spawn(fragile(handled), nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function() return table.remove(verdicts, 1) end,
        },
      })

      tell_all(ref, { "a", "boom", "b", "boom", "c", "boom", "d" })

      assert.are.same({ "a1", "b1", "c2" }, handled)
    end)

    for what, options in pairs {
      ["default_strategy"] = { supervisor_strategy = troupe.default_strategy },
      ["one_for_one without settings"] = { supervisor_strategy = troupe.one_for_one {} },
      ["what holds where nothing is said"] = {},
    } do
      it("SUP-1 " .. what .. " restarts ten times within a minute, and no more", function()
        local handled = {}
        local ref = kit().system:spawn(fragile(handled), nil, options)

        for _ = 1, 10 do ref:tell("boom") end
        kit():advance(59999)
        tell_all(ref, { "a", "boom", "b" })

        assert.are.same({ "a11" }, handled)
      end)

      it("SUP-1 " .. what .. " forgets restarts after a minute", function()
        local handled = {}
        local ref = kit().system:spawn(fragile(handled), nil, options)
        for _ = 1, 10 do ref:tell("boom") end

        kit():advance(60000)
        for _ = 1, 10 do ref:tell("boom") end
        tell_all(ref, { "a" })

        assert.are.same({ "a21" }, handled)
      end)
    end

    it("SUP-1 stopping_strategy stops at the first failure", function()
      local handled, stopped = {}, collect("actor_stopped")
      local ref = kit().system:spawn(fragile(handled), nil, {
        supervisor_strategy = troupe.stopping_strategy,
      })

      tell_all(ref, { "a", "boom", "b" })

      assert.are.same({ "a1" }, handled)
      assert.is_true(stopped[1].ref == ref)
    end)

    it("SUP-1 escalating_strategy hands the failure to the parent", function()
      local failed = collect("actor_failed")
      local parent = kit().system:spawn({
        supervisor_strategy = troupe.escalating_strategy,
        receive = function(actor)
          actor:spawn(function() error("boom", 0) end, "child"):tell("go")
        end,
      }, "parent")

      tell_all(parent, { "go" })

      assert.equal(2, #failed)
      assert.equal("child", failed[1].ref.name)
      assert.equal("escalate", failed[1].directive)
      assert.is_true(failed[2].ref == parent)
    end)

    it("SUP-1 one_for_one leaves the siblings of a failing child alone", function()
      local first, second = {}, {}
      local parent = kit().system:spawn({
        pre_start = function(actor)
          actor.first = actor:spawn(fragile(first))
          actor.second = actor:spawn(fragile(second))
        end,
        receive = function(actor, message)
          actor.first:tell(message)
          if message ~= "boom" then actor.second:tell(message) end
        end,
      })

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b2" }, first)
      assert.are.same({ "a1", "b1" }, second)
    end)

    it("SUP-1 refuse settings of the wrong kind or range", function()
      for _, wrong in ipairs {
        { decider = "retry" }, { decider = 42 }, { decider = {} },
        { max_restarts = -2 }, { max_restarts = 1.5 }, { max_restarts = 0 / 0 },
        { max_restarts = 1 / 0 }, { max_restarts = "3" },
        { within_ms = -1 }, { within_ms = 0 }, { within_ms = 0 / 0 }, { within_ms = "1000" },
        { max_restart = 3 },
      } do
        local name, value = next(wrong)
        assert.error_matches(function() troupe.one_for_one(wrong) end, name, nil, true)
        assert.is_not_nil(value)
      end
    end)

    it("SUP-1 refuse a supervisor_strategy that is none", function()
      local function noop() end
      for _, wrong in ipairs { "restart", 42, {}, noop } do
        assert.error_matches(function()
          kit().system:spawn(noop, nil, { supervisor_strategy = wrong })
        end, "supervisor_strategy")
        assert.error_matches(function()
          kit().system:spawn({ receive = noop, supervisor_strategy = wrong })
        end, "supervisor_strategy")
      end
      assert.equal(0, kit().system:stats().actors)
    end)
  end)

  describe("decide_by", function()
    local function directives(failed)
      local list = {}
      for i, event in ipairs(failed) do list[i] = event.directive end
      return list
    end

    --- What a decider says to each reason.
    local function decisions(decider, reasons)
      local failed = collect("actor_failed")
      for _, reason in ipairs(reasons) do
        kit().system:spawn(function() error(reason, 0) end, nil, {
          supervisor_strategy = troupe.one_for_one { decider = decider },
        }):tell("fail")
        kit():settle()
      end
      return directives(failed)
    end

    local busy, broken = troupe.error("Busy", "later"), troupe.error("Broken", "no disk")

    it("SUP-2 goes by the names of errors and by predicates", function()
      local decider = troupe.decide_by {
        { "Busy", "resume" },
        { function(reason) return reason == "lost" end, "escalate" },
        { "Broken", "stop" },
      }

      assert.are.same({ "resume", "escalate", "stop" },
        decisions(decider, { busy, "lost", broken }))
    end)

    it("SUP-2 takes the first match", function()
      local decider = troupe.decide_by {
        { function(reason) return reason == busy end, "resume" },
        { "Busy", "stop" },
        { function() return true end, "restart" },
      }

      assert.are.same({ "resume", "stop", "restart" },
        decisions(decider, { busy, troupe.error("Busy", "another"), "lost" }))
    end)

    it("SUP-2 falls back to a directive, or to another decider", function()
      local function by_text(reason) return reason == "lost" and "stop" or "resume" end

      assert.are.same({ "escalate", "resume" },
        decisions(troupe.decide_by { { "Busy", "resume" }, otherwise = "escalate" },
          { broken, busy }))
      assert.are.same({ "resume", "stop", "restart" },
        decisions(troupe.decide_by { { "Busy", "restart" }, otherwise = by_text },
          { broken, "lost", busy }))
    end)

    it("SUP-2 falls back to what Akka does: no restart of the killed and of what cannot start",
      function()
        local failed = collect("actor_failed")
        local strategy = troupe.one_for_one { decider = troupe.decide_by { { "Busy", "resume" } } }
        local function spawn(behavior)
          return kit().system:spawn(behavior, nil, { supervisor_strategy = strategy })
        end
        spawn({ pre_start = function() error("no disk") end, receive = function() end })
        spawn(function() end):kill()
        spawn(function() error(broken) end):tell("fail")
        spawn(function() error("plain text") end):tell("fail")
        kit():settle()

        assert.are.same({ "stop", "stop", "restart", "restart" }, directives(failed))
      end)

    it("SUP-2 knows a failed start by its own name, and by a predicate by its cause", function()
      local function by_cause(reason)
        return troupe.is_error(reason, "ActorInitializationError")
          and troupe.is_error(reason.cause, "Broken")
      end
      local failed = collect("actor_failed")
      for _, matches in ipairs {
        { { "Broken", "escalate" }, otherwise = "stop" },
        { { "ActorInitializationError", "escalate" }, otherwise = "stop" },
        { { by_cause, "escalate" }, otherwise = "stop" },
      } do
        kit().system:spawn({ pre_start = function() error(broken) end, receive = function() end },
          nil, { supervisor_strategy = troupe.one_for_one { decider = troupe.decide_by(matches) } })
      end
      kit():settle()

      assert.are.same({ "stop", "escalate", "escalate" }, directives(failed))
    end)

    it("SUP-2 a predicate that raises stops the child, as a decider that does", function()
      local failed = collect("actor_failed")
      decisions(troupe.decide_by { { function() error("bad") end, "resume" } }, { busy })

      assert.equal("stop", failed[1].directive)
      assert.equal("decider", failed[1].why)
    end)

    it("SUP-2 reads the list once", function()
      local matches = { { "Busy", "resume" }, otherwise = "stop" }
      local decider = troupe.decide_by(matches)
      matches[1][2], matches[2], matches.otherwise = "stop", { "Broken", "resume" }, "resume"

      assert.are.same({ "resume", "stop" }, decisions(decider, { busy, broken }))
    end)

    it("SUP-2 refuses wrong matches at the caller's line", function()
      local function refusal(matches)
        return raised_here(function() troupe.decide_by(matches) end)
      end

      assert.matches("decide_by: matches must be a table %(got 42%)", refusal(42))
      assert.matches('match 2 must be a pair such as .* %(got "stop"%)',
        refusal { { "Busy", "stop" }, "stop" })
      assert.matches("match 1: the match must be the name of an error or a function %(got nil%)",
        refusal { {} })
      assert.matches('match 1: the match must be the name of an error or a function %(got ""%)',
        refusal { { "", "stop" } })
      assert.matches('match 1: the directive must be one of "resume", "restart", "stop", '
        .. '"escalate" %(got "retry"%)', refusal { { "Busy", "retry" } })
      assert.matches("match 1 must hold nothing but a match and a directive %(got the key 3%)",
        refusal { { "Busy", "stop", "resume" } })
      assert.matches("otherwise must be a function, or one of .* %(got 42%)",
        refusal { otherwise = 42 })
      assert.matches('unknown option "otherwsie" %(known: otherwise%)',
        refusal { { "Busy", "stop" }, otherwsie = "stop" })
    end)
  end)

  describe("who decides", function()
    local resume = troupe.one_for_one { decider = "resume" }

    local function family(parent_strategy, child_options, handled)
      return kit().system:spawn({
        supervisor_strategy = parent_strategy,
        pre_start = function(actor)
          actor.worker = actor:spawn(fragile(handled), nil, child_options)
        end,
        receive = function(actor, message) actor.worker:tell(message) end,
      })
    end

    it("SPAWN-5 the child's option comes before the parent's strategy", function()
      local handled = {}
      local parent = family(troupe.stopping_strategy, { supervisor_strategy = resume }, handled)

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b1" }, handled)
    end)

    it("SPAWN-5 the parent's strategy comes before the default", function()
      local handled = {}
      local parent = family(resume, nil, handled)

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b1" }, handled)
    end)

    it("SPAWN-5 the default decides when neither says anything", function()
      local handled = {}
      local parent = family(nil, nil, handled)

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b2" }, handled)
    end)

    it("SPAWN-5 a behavior's strategy is for its children, not for itself", function()
      local handled = {}
      local behavior = fragile(handled)
      behavior.supervisor_strategy = troupe.stopping_strategy
      local ref = kit().system:spawn(behavior)

      tell_all(ref, { "a", "boom", "b" })

      assert.are.same({ "a1", "b2" }, handled)
    end)

    it("SPAWN-5 an option is for the actor itself, not for its children", function()
      local handled = {}
      local parent = kit().system:spawn({
        pre_start = function(actor) actor.worker = actor:spawn(fragile(handled)) end,
        receive = function(actor, message) actor.worker:tell(message) end,
      }, nil, { supervisor_strategy = troupe.stopping_strategy })

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b2" }, handled)
    end)
  end)

  describe("suspension", function()
    it("SUP-3 decides before the rest of the batch is handled", function()
      local order = {}
      local ref = kit().system:spawn(function(_, message)
        order[#order + 1] = message
        if message == "boom" then error("boom", 0) end
      end, nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function()
            order[#order + 1] = "decide"
            return "resume"
          end,
        },
      })

      tell_all(ref, { "a", "boom", "b", "c" })

      assert.are.same({ "a", "boom", "decide", "b", "c" }, order)
    end)

    -- A parent whose restart takes from 10 to 110, and a child that outlives it.
    local function slow_restart(child_behavior)
      local child
      local parent = kit().system:spawn({
        stop_children_on_restart = false,
        pre_start = function(actor) child = actor:spawn(child_behavior) end,
        receive = function() error("boom", 0) end,
        pre_restart = function() troupe.sleep(100) end,
        post_restart = function() end,
      })
      kit():advance(10)
      return parent, child
    end

    it("SUP-3 holds the mail of the whole subtree while its top is suspended", function()
      local handled = {}
      local parent, child = slow_restart(function(_, message)
        handled[#handled + 1] = { message, kit():now() }
      end)

      parent:tell("boom")
      kit():settle()
      child:tell("a")
      kit():advance(99)
      assert.are.same({}, handled)
      kit():advance(1)

      assert.are.same({ { "a", 110 } }, handled)
    end)

    it("SUP-3 lets a wait that ends while suspended take effect at the resumption", function()
      local woke_at
      local parent, child = slow_restart(function()
        troupe.sleep(50)
        woke_at = kit():now()
      end)

      child:tell("sleep")
      parent:tell("boom")
      kit():advance(1000)

      assert.equal(110, woke_at)
    end)

    it("SUP-3 lets a wait that is longer than the suspension end at its time", function()
      local woke_at
      local parent, child = slow_restart(function()
        troupe.sleep(500)
        woke_at = kit():now()
      end)

      child:tell("sleep")
      parent:tell("boom")
      kit():advance(1000)

      assert.equal(510, woke_at)
    end)

    it("SUP-3 keeps suspended what is below a restart, whatever is resumed above it", function()
      local handled = {}
      local refs = {}
      local function leaf(_, message) handled[#handled + 1] = { message, kit():now() } end
      local function child(actor)
        refs.leaf = actor:spawn(leaf)
        error("escalates", 0)
      end
      local function parent(actor)
        actor:spawn(child, nil, { supervisor_strategy = troupe.escalating_strategy }):tell("go")
      end
      refs.top = kit().system:spawn(function(actor)
        actor:spawn({
          receive = parent,
          stop_children_on_restart = false,
          pre_restart = function() troupe.sleep(100) end,
        }):tell("go")
      end, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
      refs.top:tell("go")
      kit():settle()

      refs.top:kill()
      refs.leaf:tell("a")
      kit():advance(200)

      assert.are.same({ { "a", 100 } }, handled)
    end)

    it("SUP-3 lets a suspended actor be stopped", function()
      local stopped = collect("actor_stopped")
      local parent, child = slow_restart(function() end)
      parent:tell("boom")
      kit():settle()

      child:stop()
      kit():advance(1000)

      assert.is_true(stopped[1].ref == child)
    end)

    it("SUP-13 decides at once while the parent's handler is parked", function()
      local restarted_at
      kit().system.events:subscribe(function() restarted_at = kit():now() end, "actor_restarted")
      local parent = kit().system:spawn(function(actor)
        actor:spawn(function() error("boom", 0) end):tell("go")
        troupe.sleep(1000)
      end)
      parent:tell("go")

      kit():advance(2000)

      assert.equal(0, restarted_at)
    end)
  end)

  describe("directives", function()
    it("SUP-4 restart handles a on the first incarnation, b and c on the second", function()
      local handled = {}
      local ref = kit().system:spawn(fragile(handled))

      tell_all(ref, { "a", "boom", "b", "c" })

      assert.are.same({ "a1", "b2", "c2" }, handled)
    end)

    it("SUP-4 restart keeps the order of mail that arrives meanwhile", function()
      local handled = {}
      local ref = kit().system:spawn({
        pre_restart = function() troupe.sleep(100) end,
        receive = function(_, message)
          if message == 2 then error("boom", 0) end
          handled[#handled + 1] = message
        end,
      })

      tell_all(ref, { 1, 2, 3, 4, 5 })
      tell_all(ref, { 6, 7 })
      kit():advance(100)

      assert.are.same({ 1, 3, 4, 5, 6, 7 }, handled)
    end)

    it("SUP-4 resume keeps the state and skips the message", function()
      local counts = {}
      local ref = kit().system:spawn({
        pre_start = function(actor) actor.count = 0 end,
        receive = function(actor, message)
          actor.count = actor.count + 1
          if message == "boom" then error("boom", 0) end
          counts[#counts + 1] = actor.count
        end,
      }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

      tell_all(ref, { "a", "boom", "b" })

      assert.are.same({ 1, 3 }, counts)
    end)

    it("SUP-4 resume runs no hook", function()
      local hooks = {}
      local function note(name) return function() hooks[#hooks + 1] = name end end
      local ref = kit().system:spawn({
        pre_start = note("pre_start"), post_stop = note("post_stop"),
        pre_restart = note("pre_restart"), post_restart = note("post_restart"),
        receive = function() error("boom", 0) end,
      }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

      tell_all(ref, { "boom" })

      assert.are.same({ "pre_start" }, hooks)
    end)

    it("SUP-4 resume resumes every descendant, also when two failures overlap", function()
      local handled = {}
      local resume = troupe.one_for_one { decider = "resume" }
      local function level(n)
        return {
          supervisor_strategy = resume,
          pre_start = function(actor)
            if n < 3 then actor.below = actor:spawn(level(n + 1)) end
          end,
          receive = function(actor, message)
            if message == "all fail" then
              if actor.below then actor.below:tell(message) end
              error("boom", 0)
            end
            handled[#handled + 1] = n
            if actor.below then actor.below:tell(message) end
          end,
        }
      end
      local top = kit().system:spawn(level(1), nil, { supervisor_strategy = resume })

      tell_all(top, { "all fail", "all fail", "hello" })

      assert.are.same({ 1, 2, 3 }, handled)
    end)

    it("SUP-4 stop ends the children, then runs post_stop, then dead-letters the mail", function()
      local order = {}
      kit().system.events:subscribe(function(event)
        order[#order + 1] = event.message .. " " .. event.reason
      end, "dead_letter")
      local parent = kit().system:spawn({
        pre_start = function(actor)
          actor:spawn({
            receive = function() end,
            post_stop = function()
              troupe.sleep(10)
              order[#order + 1] = "child"
            end,
          })
        end,
        receive = function() error("boom", 0) end,
        post_stop = function() order[#order + 1] = "parent" end,
      }, nil, { supervisor_strategy = troupe.stopping_strategy })
      kit():settle()

      tell_all(parent, { "boom", "b", "c" })
      kit():advance(10)

      assert.are.same({ "child", "parent", "b stopped", "c stopped" }, order)
    end)

    it("SUP-4 escalate fails the parent with the very same cause", function()
      local cause = {}
      local seen
      local parent = kit().system:spawn({
        supervisor_strategy = troupe.escalating_strategy,
        receive = function(actor) actor:spawn(function() error(cause) end):tell("go") end,
      }, nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function(reason)
            seen = reason
            return "stop"
          end,
        },
      })

      tell_all(parent, { "go" })

      assert.is_true(rawequal(cause, seen))
    end)

    it("SUP-4 escalate restarts the parent and stops the child when the grandparent says so",
      function()
        local incarnations, stopped = 0, collect("actor_stopped")
        local parent = kit().system:spawn({
          supervisor_strategy = troupe.escalating_strategy,
          pre_start = function() incarnations = incarnations + 1 end,
          receive = function(actor)
            actor:spawn(function() error("boom", 0) end, "child"):tell("go")
          end,
        })

        tell_all(parent, { "go" })

        assert.equal(2, incarnations)
        assert.equal(1, #stopped)
        assert.equal("child", stopped[1].ref.name)
      end)

    it("SUP-4 escalate and resume lets the child go on", function()
      local handled = {}
      local parent = kit().system:spawn({
        supervisor_strategy = troupe.escalating_strategy,
        pre_start = function(actor) actor.worker = actor:spawn(fragile(handled)) end,
        receive = function(actor, message) actor.worker:tell(message) end,
      }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

      tell_all(parent, { "a", "boom", "b" })

      assert.are.same({ "a1", "b1" }, handled)
    end)

    it("SUP-4 escalate and resume lets those below the child go on", function()
      local handled = {}
      local top = kit().system:spawn({
        supervisor_strategy = troupe.escalating_strategy,
        pre_start = function(actor)
          actor.middle = actor:spawn({
            pre_start = function(middle) middle.below = middle:spawn(fragile(handled)) end,
            receive = function(middle, message)
              if message == "boom" then error("boom", 0) end
              middle.below:tell(message)
            end,
          })
        end,
        receive = function(actor, message) actor.middle:tell(message) end,
      }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

      tell_all(top, { "a", "boom", "boom", "b" })

      assert.are.same({ "a1", "b1" }, handled)
    end)
  end)

  describe("budgets", function()
    local function spawn_with_budget(handled, max_restarts, within_ms)
      return kit().system:spawn(fragile(handled), nil, {
        supervisor_strategy = troupe.one_for_one {
          max_restarts = max_restarts, within_ms = within_ms,
        },
      })
    end

    it("SUP-5 max_restarts = n grants n restarts, and the next failure stops", function()
      for n = 0, 4 do
        local handled = {}
        local ref = spawn_with_budget(handled, n, 1000)

        for i = 0, n do tell_all(ref, { "m" .. i .. ":", "boom" }) end
        tell_all(ref, { "after the last" })

        local expected = {}
        for i = 0, n do expected[i + 1] = "m" .. i .. ":" .. i + 1 end
        assert.are.same(expected, handled, "max_restarts " .. n)
      end
    end)

    it("SUP-5 logs the failure that exceeds the budget, as a stop", function()
      local failed = collect("actor_failed")
      local ref = spawn_with_budget({}, 1, 1000)

      tell_all(ref, { "boom", "boom" })

      local records = logged_failures()
      assert.equal(2, #records)
      assert.equal("warn", records[1].level)
      assert.equal("error", records[2].level)
      assert.equal("restart", failed[1].directive)
      assert.equal("stop", failed[2].directive)
    end)

    it("SUP-5 -1 is no limit", function()
      local handled = {}
      local ref = spawn_with_budget(handled, -1, 1000)

      for _ = 1, 500 do ref:tell("boom") end
      tell_all(ref, { "a" })

      assert.are.same({ "a501" }, handled)
    end)

    it("SUP-5 takes a limit of maxinteger and a window of huge", function()
      local handled = {}
      local unlimited = spawn_with_budget(handled, math.maxinteger, 1000)
      local for_ever = spawn_with_budget(handled, 1, math.huge)

      tell_all(unlimited, { "boom", "a" })
      tell_all(for_ever, { "boom" })
      kit():advance(2 ^ 41)
      tell_all(for_ever, { "b", "boom", "c" })

      assert.are.same({ "a2", "b2" }, handled)
    end)

    it("SUP-5 the window slides with the system's clock", function()
      local handled = {}
      local ref = spawn_with_budget(handled, 2, 1000)

      tell_all(ref, { "boom" })           -- at 0
      kit():advance(600)
      tell_all(ref, { "boom" })           -- at 600
      kit():advance(401)
      tell_all(ref, { "boom", "a" })      -- at 1001: the first no longer counts
      kit():advance(598)
      tell_all(ref, { "boom", "b" })      -- at 1599: both others count

      assert.are.same({ "a4" }, handled)
    end)

    it("SUP-5 a restart counts for as long as it is younger than the window", function()
      for age, expected in pairs { [999] = {}, [1000] = { "a3" } } do
        local handled = {}
        local ref = spawn_with_budget(handled, 1, 1000)

        tell_all(ref, { "boom" })
        kit():advance(age)
        tell_all(ref, { "boom", "a" })

        assert.are.same(expected, handled)
      end
    end)

    it("SUP-5 every child has a budget of its own", function()
      local children = {}
      local restarted, stopped = collect("actor_restarted"), collect("actor_stopped")
      kit().system:spawn({
        supervisor_strategy = troupe.one_for_one { max_restarts = 1, within_ms = 1000 },
        pre_start = function(actor)
          for i = 1, 10 do children[i] = actor:spawn(function() error("boom", 0) end) end
        end,
        receive = function() end,
      })
      kit():settle()

      for _, child in ipairs(children) do child:tell("boom") end
      kit():settle()
      assert.equal(10, #restarted)
      assert.equal(0, #stopped)

      children[3]:tell("boom")
      kit():settle()
      assert.equal(10, #restarted)
      assert.is_true(#stopped == 1 and stopped[1].ref == children[3])
    end)

    it("SUP-5 resumed failures cost nothing", function()
      local handled = {}
      local verdicts = { "resume", "resume", "resume", "restart", "restart" }
      local ref = kit().system:spawn(fragile(handled), nil, {
        supervisor_strategy = troupe.one_for_one {
          max_restarts = 1,
          decider = function() return table.remove(verdicts, 1) end,
        },
      })

      tell_all(ref, { "boom", "boom", "boom", "boom", "a", "boom", "b" })

      assert.are.same({ "a2" }, handled)
    end)

    it("SUP-5 endless restarts keep no memory", function()
      kit { log_level = "off" }
      local ref = spawn_with_budget({}, -1, 60000)
      local function fail(n)
        for i = 1, n do
          ref:tell("boom")
          if i % 100 == 0 then kit():settle() end
        end
        collectgarbage()
        collectgarbage()
        return kit().system:stats()
      end
      local before = fail(200)

      local after = fail(10000)

      assert.equal(before.engine_bytes, after.engine_bytes)
      assert.equal(before.anchored, after.anchored)
      assert.equal(before.pooled, after.pooled)
    end)
  end)

  describe("deciders that fail", function()
    local faults = {
      ["raises"] = function() error("lost my mind", 0) end,
      ["raises nil"] = function() error(nil) end,
      ["gives nothing"] = function() end,
      ["gives false"] = function() return false end,
      ["gives an unknown name"] = function() return "retry" end,
      ["gives a table"] = function() return {} end,
      ["yields"] = function() coroutine.yield() return "restart" end,
      ["sleeps"] = function() troupe.sleep(10) return "restart" end,
    }
    for what, decider in pairs(faults) do
      it("SUP-7 a decider that " .. what .. " stops the child and logs why", function()
        local handled = {}
        local ref = kit().system:spawn(fragile(handled), "child", {
          supervisor_strategy = troupe.one_for_one { decider = decider },
        })
        local failed, stopped = collect("actor_failed"), collect("actor_stopped")

        tell_all(ref, { "a", "boom", "b" })

        assert.are.same({ "a1" }, handled)
        assert.equal("stop", failed[1].directive)
        assert.equal(1, #stopped)
        local explained = false
        for _, record in ipairs(kit().logs) do
          if record.level == "error" and record.message:find("decider", 1, true) then
            explained = true
          end
        end
        assert.is_true(explained)
      end)
    end

    it("SUP-7 logs what a decider raised", function()
      local ref = kit().system:spawn(fragile({}), nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function() error("lost my mind", 0) end,
        },
      })

      tell_all(ref, { "boom" })

      local lines = {}
      for _, record in ipairs(kit().logs) do lines[#lines + 1] = record.message end
      assert.matches("lost my mind", table.concat(lines, "\n"), 1, true)
    end)

    it("SUP-7 a decider that asks stops the child", function()
      local target = kit().system:spawn(function(actor) actor:reply("restart") end)
      local handled = {}
      local ref = kit().system:spawn(fragile(handled), nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function() return (target:ask("?")) end,
        },
      })

      tell_all(ref, { "a", "boom", "b" })

      assert.are.same({ "a1" }, handled)
    end)

    it("SUP-7 leaves the parent and its mail alone", function()
      local handled = {}
      local parent = kit().system:spawn({
        supervisor_strategy = troupe.one_for_one {
          decider = function() error("lost my mind", 0) end,
        },
        pre_start = function(actor)
          actor.state = "kept"
          actor:spawn(function() error("boom", 0) end):tell("go")
        end,
        receive = function(actor, message)
          handled[#handled + 1] = message .. " " .. actor.state
        end,
      })

      tell_all(parent, { "a", "b" })

      assert.are.same({ "a kept", "b kept" }, handled)
    end)
  end)

  describe("logging", function()
    for directive, level in pairs {
      restart = "warn", resume = "warn", stop = "error", escalate = "error",
    } do
      it("SUP-8 logs a failure once, at " .. level .. " for " .. directive, function()
        local function explode() error("no disk", 0) end
        local parent = kit().system:spawn(function(actor)
          actor:spawn(function() explode() end, "child", {
            supervisor_strategy = troupe.one_for_one { decider = directive },
          }):tell("go")
        end, "parent")

        tell_all(parent, { "go" })

        local of_child = {}
        for _, record in ipairs(logged_failures()) do
          if tostring(record.path):find("/user/parent/child", 1, true) then
            of_child[#of_child + 1] = record
          end
        end
        assert.equal(1, #of_child)
        local record = of_child[1]
        assert.equal(level, record.level)
        assert.equal(directive, record.fields.directive)
        assert.matches("no disk", record.message, 1, true)
        assert.matches("in upvalue 'explode'", record.fields.traceback, 1, true)
      end)
    end

    it("SUP-8 gives the traceback of a failure after a wait", function()
      local function explode()
        troupe.sleep(10)
        error("no disk", 0)
      end
      local ref = kit().system:spawn(function() explode() end)
      ref:tell("go")

      kit():advance(10)

      assert.matches("in upvalue 'explode'", logged_failures()[1].fields.traceback, 1, true)
    end)

    for how, depth in next, { whole = 3, ["cut in the middle"] = 40 } do
      it(("SUP-8 gives a traceback as Lua writes it, %s"):format(how), function()
        local expected
        local function explode(n)
          if n > 0 then return (explode(n - 1)) end
          expected = debug.traceback(nil, 1)
          return nil .. "x"
        end
        local ref = kit().system:spawn(function() return explode(depth) end)

        tell_all(ref, { "go" })

        local function without_numbers(traceback) return (traceback:gsub("%d+", "")) end
        local given = logged_failures()[1].fields.traceback
        assert.equal(without_numbers(expected), without_numbers(given))
      end)
    end

    it("SUP-8 gives a traceback that names what is called in C", function()
      local ref = kit().system:spawn(function(_, message) error(message) end)

      tell_all(ref, { "no disk" })

      assert.matches("stack traceback:\n\t[C]: in function 'error'\n\tspec/supervision_spec.lua:",
        logged_failures()[1].fields.traceback, 1, true)
    end)

    it("SUP-8 gives the traceback and the directive in the event", function()
      local failed = collect("actor_failed")
      local ref = kit().system:spawn(fragile({}))

      tell_all(ref, { "boom" })

      assert.equal(1, #failed)
      assert.is_true(failed[1].ref == ref)
      assert.equal("restart", failed[1].directive)
      assert.equal("boom", failed[1].reason)
      assert.matches("supervision_spec.lua", failed[1].traceback, 1, true)
    end)
  end)

  describe("reasons", function()
    local reasons = {
      ["a string"] = "boom",
      ["the empty string"] = "",
      ["a table"] = { code = 7 },
      ["a Troupe error"] = troupe.error("Broken", "no disk"),
      ["a number"] = 42,
      ["false"] = false,
      ["a function"] = print,
      ["a coroutine"] = coroutine.create(print),
      ["userdata"] = io.stdout,
      ["a table whose __tostring raises"] = setmetatable({}, { __tostring = error }),
      ["a table whose __index raises"] = setmetatable({}, { __index = error }),
      ["a table whose __name is no string"] = setmetatable({}, { __name = {} }),
    }
    local names = { "nil" }
    for name in pairs(reasons) do names[#names + 1] = name end
    table.sort(names)

    for _, name in ipairs(names) do
      it("SUP-9 " .. name .. " reaches decider, hooks and events unchanged", function()
        local reason = reasons[name]
        local seen = {}
        local failed, restarted = collect("actor_failed"), collect("actor_restarted")
        local ref = kit().system:spawn({
          receive = function() error(reason, 0) end,
          pre_restart = function(_, given) seen.pre_restart = { given } end,
          post_restart = function(_, given) seen.post_restart = { given } end,
        }, nil, {
          supervisor_strategy = troupe.one_for_one {
            decider = function(given)
              seen.decider = { given }
              return "restart"
            end,
          },
        })

        tell_all(ref, { "boom" })

        for _, place in ipairs { "decider", "pre_restart", "post_restart" } do
          assert.is_true(rawequal(reason, seen[place][1]), place)
        end
        assert.is_true(rawequal(reason, failed[1].reason))
        assert.is_true(rawequal(reason, restarted[1].reason))
        assert.equal(1, #logged_failures())
      end)
    end

    it("SUP-9 gives pre_restart the message that failed", function()
      local message = {}
      local given
      local ref = kit().system:spawn({
        receive = function() error("boom", 0) end,
        pre_restart = function(_, _, m) given = m end,
      })

      tell_all(ref, { message })

      assert.is_true(rawequal(message, given))
    end)

    it("SUP-9 an error in __close replaces the handler's own", function()
      local failed = collect("actor_failed")
      local ref = kit().system:spawn(function()
        local _ <close> = setmetatable({}, { __close = function() error("from close", 0) end })
        error("from the handler", 0)
      end)

      tell_all(ref, { "go" })

      assert.equal("from close", failed[1].reason)
    end)

    it("SUP-9 an error in __close fails a handler that had returned", function()
      local failed = collect("actor_failed")
      local ref = kit().system:spawn(function()
        local _ <close> = setmetatable({}, { __close = function() error("from close", 0) end })
      end)

      tell_all(ref, { "go" })

      assert.equal("from close", failed[1].reason)
    end)

    it("SUP-9 a __close that would wait while its handler fails does not hang the actor", function()
      local handled = {}
      local ref = kit().system:spawn(function(_, message)
        local _ <close> = setmetatable({}, { __close = function() troupe.sleep(10) end })
        handled[#handled + 1] = message
        if message == "boom" then error("boom", 0) end
      end)

      tell_all(ref, { "boom", "a" })
      kit():advance(100)

      assert.are.same({ "boom", "a" }, handled)
    end)

    it("SUP-9 cuts a long reason in the log line, and nowhere else", function()
      local long = ("x"):rep(100000)
      local failed = collect("actor_failed")
      local ref = kit().system:spawn(function() error(long, 0) end)

      tell_all(ref, { "go" })

      assert.equal(long, failed[1].reason)
      local record = logged_failures()[1]
      local _, logged = record.message:gsub("x", "")
      assert.is_true(logged > 4000 and logged <= 4096, "logged " .. logged)
      for name, field in pairs(record.fields) do
        assert.is_true(#tostring(field) < 10000, name)
      end
    end)
  end)

  describe("at the top", function()
    it("SUP-10 an escalation past a top-level actor stops that actor alone", function()
      local handled, stopped = {}, collect("actor_stopped")
      local sibling = kit().system:spawn(fragile(handled), "sibling")
      local failing = kit().system:spawn(fragile({}), "failing", {
        supervisor_strategy = troupe.escalating_strategy,
      })

      sibling:tell("a")
      tell_all(failing, { "boom" })
      tell_all(sibling, { "b" })

      assert.are.same({ "a1", "b1" }, handled)
      assert.equal(1, #stopped)
      assert.is_true(stopped[1].ref == failing)
      assert.is_truthy(kit().system:spawn(function() end, "another"))
    end)

    it("SUP-10 an escalation past the top terminates the system where that is asked for", function()
      local handled = {}
      local system = kit({ escalate_to_root = "terminate" }).system
      local sibling = system:spawn(fragile(handled))
      local failing = system:spawn(fragile({}), "failing", {
        supervisor_strategy = troupe.escalating_strategy,
      })
      system:schedule_once(10, function() handled[#handled + 1] = "not over" end)
      sibling:tell("a")
      tell_all(failing, { "boom" })
      kit():advance(1000)

      assert.are.same({ "a1" }, handled)
      assert.equal(0, system:stats().actors)
      assert.has_error(function() system:spawn(function() end) end)
    end)

    it("SUP-10 only escalation terminates the system", function()
      local system = kit({ escalate_to_root = "terminate" }).system
      local failing = system:spawn(fragile({}), nil, {
        supervisor_strategy = troupe.one_for_one { max_restarts = 0 },
      })

      tell_all(failing, { "boom" })

      assert.is_truthy(system:spawn(function() end))
    end)

    it("SUP-10 takes stop and terminate, and nothing else", function()
      assert.has_error(function() kit({ escalate_to_root = "restart" }) end)
      assert.is_truthy(kit({ escalate_to_root = "stop" }))
    end)

    it("SUP-10 an escalation through all levels runs every post_stop, deepest first", function()
      local order = {}
      local function level(n)
        return {
          supervisor_strategy = troupe.escalating_strategy,
          pre_start = function(actor)
            if n < 3 then actor.below = actor:spawn(level(n + 1)) end
          end,
          receive = function(actor)
            if not actor.below then error("boom", 0) end
            actor.below:tell("go")
          end,
          post_stop = function() order[#order + 1] = n end,
        }
      end
      local top = kit().system:spawn(level(1), nil, {
        supervisor_strategy = troupe.escalating_strategy,
      })

      tell_all(top, { "go" })

      assert.are.same({ 3, 2, 1 }, order)
      assert.equal(0, kit().system:stats().actors)
    end)
  end)
end)
