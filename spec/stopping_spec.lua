local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local child_process = require "spec.support.child"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("stopping", function()
  local kit = new_kit.each(before_each, after_each)

  --- Writes the messages of all dead letters to `list`.
  local function collect_letters(list)
    kit().system.events:subscribe(function(event) list[#list + 1] = event.message end,
      "dead_letter")
  end

  it("STOP-1 handles what was told before ref:stop and dead-letters what comes after", function()
    local handled, letters = {}, {}
    collect_letters(letters)
    local ref = kit().system:spawn(function(_, message) handled[#handled + 1] = message end)
    ref:tell("a")
    ref:tell("b")
    ref:stop()
    ref:tell("c")
    ref:tell("d")
    kit():settle()

    assert.are.same({ "a", "b" }, handled)
    assert.are.same({ "c", "d" }, letters)
  end)

  it("STOP-1 handles what was told before a PoisonPill and dead-letters the rest", function()
    local handled, letters = {}, {}
    collect_letters(letters)
    local ref = kit().system:spawn(function(_, message) handled[#handled + 1] = message end)
    for _, message in ipairs { "a", "b", troupe.PoisonPill, "c", "d" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a", "b" }, handled)
    assert.are.same({ "c", "d" }, letters)
  end)

  it("STOP-1 drains through handlers that wait", function()
    local handled = {}
    local ref = kit().system:spawn({
      receive = function(_, ms)
        troupe.sleep(ms)
        handled[#handled + 1] = kit():now()
      end,
      post_stop = function() handled[#handled + 1] = "post_stop" end,
    })
    ref:tell(10)
    ref:tell(20)
    ref:stop()
    kit():advance(30)

    assert.are.same({ 10, 30, "post_stop" }, handled)
  end)

  it("STOP-1 drains an actor that restarts meanwhile", function()
    local handled = {}
    local ref = kit().system:spawn(function(_, message)
      handled[#handled + 1] = message
      if message == "fail" then error("restart") end
    end)
    for _, message in ipairs { "a", "fail", "b" } do ref:tell(message) end
    ref:stop()
    kit():settle()

    assert.are.same({ "a", "fail", "b" }, handled)
    assert.are.equal(0, kit().system:stats().actors)
  end)

  it("STOP-1 stops once, however often it is told to", function()
    local stops, letters = 0, {}
    collect_letters(letters)
    local ref = kit().system:spawn({
      receive = ignore,
      post_stop = function() stops = stops + 1 end,
    })
    ref:stop()
    ref:stop()
    kit():settle()
    ref:stop()
    kit():settle()

    assert.are.equal(1, stops)
    assert.are.same({}, letters)
  end)

  it("STOP-1 stops an actor that has not started yet, without leaving it half-made", function()
    local ref = kit().system:spawn(ignore, "name")
    ref:stop()
    kit():settle()

    assert.are.equal(0, kit().system:stats().actors)
    assert.are.equal("name", kit().system:spawn(ignore, "name").name)
  end)

  it("STOP-2 stops itself after the current handler, without the mail behind it", function()
    local handled, letters = {}, {}
    collect_letters(letters)
    local ref = kit().system:spawn({
      receive = function(actor, message)
        actor:stop()
        handled[#handled + 1] = message
      end,
      post_stop = function() handled[#handled + 1] = "post_stop" end,
    })
    for _, message in ipairs { "a", "b", "c" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a", "post_stop" }, handled)
    assert.are.same({ "b", "c" }, letters)
  end)

  it("STOP-2 lets the handler that stops its actor go on telling and replying", function()
    local system = kit().system
    local told
    local other = system:spawn(function(_, message) told = message end)
    local ref = system:spawn(function(actor)
      actor:stop()
      other:tell("told")
      actor:reply("answered")
    end)

    assert.are.equal("answered", (ref:ask("stop")))
    kit():settle()

    assert.are.equal("told", told)
  end)

  it("STOP-2 stops a child hard: without the mail behind", function()
    local handled, letters = {}, {}
    collect_letters(letters)
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn({
          receive = function(_, message) handled[#handled + 1] = message end,
          post_stop = function() handled[#handled + 1] = "post_stop" end,
        })
      end,
      receive = function(actor)
        kid:tell("b")
        kid:tell("c")
        actor:stop(kid)
      end,
    })
    kit():settle()
    kid:tell("a")
    kit():settle()

    parent:tell("stop it")
    kit():settle()

    assert.are.same({ "a", "post_stop" }, handled)
    assert.are.same({ "b", "c" }, letters)
  end)

  it("STOP-2 stops a child hard: without waiting for a parked handler", function()
    local seen = {}
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn({
          receive = function()
            troupe.sleep(1000)
            seen[#seen + 1] = "handled"
          end,
          post_stop = function() seen[#seen + 1] = ("post_stop at %g"):format(kit():now()) end,
        })
      end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()
    kid:tell("sleep")
    kit():advance(10)

    parent:tell("stop it")
    kit():advance(2000)

    assert.are.same({ "post_stop at 10" }, seen)
  end)

  it("STOP-2 stops a child hard that is draining", function()
    local seen = {}
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn(function(_, message)
          seen[#seen + 1] = message
          troupe.sleep(1000)
        end)
      end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()
    kid:tell("a")
    kid:tell("b")
    kid:stop()
    kit():advance(10)

    parent:tell("stop it")
    kit():settle()

    assert.are.same({ "a" }, seen)
    assert.are.equal(1, kit().system:stats().actors)
  end)

  it("STOP-3 stops all children at the same time, and itself when all are gone", function()
    local seen = {}
    local function leaf(ms)
      return {
        receive = ignore,
        post_stop = function(actor)
          troupe.sleep(ms)
          seen[#seen + 1] = actor.name .. (" at %g"):format(kit():now())
        end,
      }
    end
    local ref = kit().system:spawn({
      pre_start = function(actor)
        actor:spawn(leaf(30), "a")
        actor:spawn(leaf(50), "b")
        actor:spawn(leaf(20), "c")
      end,
      receive = ignore,
      post_stop = function() seen[#seen + 1] = ("parent at %g"):format(kit():now()) end,
    })
    kit():settle()
    ref:stop()
    kit():advance(100)

    assert.are.same({ "c at 20", "a at 30", "b at 50", "parent at 50" }, seen)
  end)

  it("STOP-3 stops a tree from the leaves to the root", function()
    local seen = {}
    local function level(n)
      return {
        pre_start = function(actor) if n < 3 then actor:spawn(level(n + 1)) end end,
        receive = ignore,
        post_stop = function(actor)
          seen[#seen + 1] = n
          assert.are.equal(0, #actor.children)
        end,
      }
    end
    local ref = kit().system:spawn(level(1))
    kit():settle()
    ref:stop()
    kit():settle()

    assert.are.same({ 3, 2, 1 }, seen)
    assert.are.equal(0, #kit().logs)
  end)

  it("STOP-3 does not let the children drain", function()
    local handled, letters = {}, {}
    collect_letters(letters)
    local ref = kit().system:spawn(function(actor)
      local kid = actor:spawn(function(_, message) handled[#handled + 1] = message end)
      kid:tell("a")
      kid:tell("b")
      actor:stop()
    end)
    ref:tell("go")
    kit():settle()

    assert.are.same({}, handled)
    assert.are.same({ "a", "b" }, letters)
  end)

  it("STOP-4 ends in order", function()
    local system = kit().system
    local seen = {}
    local function note(text) seen[#seen + 1] = text end
    system.events:subscribe(function(event) note("dead " .. event.message) end, "dead_letter")
    local function on_stopped()
      system.events:unsubscribe(on_stopped)
      note("actor_stopped")
      note("free: " .. system:spawn(ignore, "name").name)
    end
    system.events:subscribe(on_stopped, "actor_stopped")
    local ref = system:spawn({
      receive = function(actor)
        actor.timers:start_fixed_delay("tick", "tick", 10)
        actor:stop()
      end,
      post_stop = function(actor)
        note(actor.timers:is_active("tick") and "timer on" or "timers off")
        note(pcall(system.spawn, system, ignore, "name") and "free" or "not free")
      end,
    }, "name")
    for _, message in ipairs { "stop", "mail 1", "mail 2" } do ref:tell(message) end
    kit():settle()

    assert.are.same({
      "timers off", "not free", "dead mail 1", "dead mail 2", "actor_stopped", "free: name",
    }, seen)
  end)

  it("STOP-4 turns the timers off while it waits for its children", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor)
        actor.timers:start_fixed_delay("tick", "tick", 10)
        actor:spawn({ receive = ignore, post_stop = function() troupe.sleep(100) end })
      end,
      receive = function(_, message) seen[#seen + 1] = message end,
    })
    kit():advance(15)
    ref:stop()
    kit():advance(200)

    assert.are.same({ "tick" }, seen)
  end)

  it("STOP-6 costs no CPU while it waits for children", function()
    local output, status = child_process [[
      local troupe = require "troupe"
      local system = troupe.system("slow")
      local parent = system:spawn({
        pre_start = function(actor)
          actor:spawn({ receive = function() end, post_stop = function() troupe.sleep(500) end })
        end,
        receive = function() end,
      })
      parent:tell("start")
      system:run()
      parent:stop()
      local cpu = os.clock()
      system:run()
      print(system:stats().actors, os.clock() - cpu < 0.05)
    ]]

    assert.are.same({ "0\ttrue\n", 0 }, { output, status })
  end)

  it("STOP-5 gives true when it stopped in time", function()
    local ref = kit().system:spawn(function() troupe.sleep(50) end)
    ref:tell("work")

    local task = kit():async(function() return troupe.graceful_stop(ref, 100) end)
    kit():advance(100)

    assert.is_true(task:await())
  end)

  it("STOP-5 gives true when it has stopped with its system", function()
    local ref = kit().system:spawn(function() end)
    kit().system:terminate()

    assert.is_true(ref:await_stop(10))
    assert.is_true(troupe.graceful_stop(ref, 10))
  end)

  it("STOP-5 stops it hard and gives false when the time is over", function()
    local seen = {}
    local ref = kit().system:spawn(function(_, message)
      seen[#seen + 1] = message
      troupe.sleep(1000)
    end)
    ref:tell("a")
    ref:tell("b")

    local task = kit():async(function() return troupe.graceful_stop(ref, 100) end)
    kit():advance(100)

    assert.is_false(task:await())
    assert.are.equal(0, kit().system:stats().actors)
    assert.are.same({ "a" }, seen)
  end)

  it("STOP-5 raises where it may not wait, and has stopped nobody", function()
    local stopped, messages = {}, {}
    local function run(place)
      local target = kit().system:spawn(ignore)
      local function wrong() troupe.graceful_stop(target, 100) end
      kit().system:spawn(function(actor)
        messages[#messages + 1] = raised_here(function() place(wrong) end, wrong)
        actor:stop()
      end):tell("go")
      kit():settle()
      stopped[#stopped + 1] = target:await_stop(1) or false
    end

    run(function(wrong) coroutine.wrap(wrong)() end)
    run(function(wrong) table.sort({ 1, 2 }, wrong) end)

    assert.are.same({ false, false }, stopped)
    assert.matches("graceful_stop: cannot wait in a coroutine of your own", messages[1], 1, true)
    assert.matches("graceful_stop: cannot wait here: a C function", messages[2], 1, true)
  end)

  it("STOP-5 refuses a reply ref, which does not stop", function()
    local message
    kit().system:spawn(function(actor)
      local asker = actor.sender
      message = raised_here(function() troupe.graceful_stop(asker, 100) end)
      actor:reply(true)
    end):ask("go")

    assert.matches("graceful_stop: a reply ref does not stop", message, 1, true)
  end)

  it("SYS-2 the guardians end with their system alone", function()
    local system = kit().system
    local answers = system:spawn(function(actor) actor:reply("alive") end)
    local user = system:actor_selection("/user"):resolve()[1]
    user:stop()
    user:kill()

    assert.is_false(troupe.graceful_stop(user, 10))

    assert.are.equal("alive", (answers:ask("?")))
  end)

  it("STOP-3 drains the children of a behavior that says so, unless the stop is hard", function()
    local function handled(drains, hard)
      local count, parent = 0, nil
      local top = kit().system:spawn({
        pre_start = function(actor)
          parent = actor:spawn {
            drain_children = drains,
            pre_start = function(self)
              self.ward = self:spawn(function()
                troupe.sleep(1)
                count = count + 1
              end)
            end,
            receive = function(self) self:forward(self.ward) end,
          }
        end,
        receive = function(actor) actor:stop(parent) end,
      })
      kit():settle()
      for i = 1, 3 do parent:tell(i) end
      kit():settle()

      if hard then top:tell("stop it") else parent:stop() end
      kit():advance(100)

      assert.are.equal("stopped", kit().system:inspect(parent).state)
      return count
    end

    assert.are.same({ 3, 0, 0 },
      { handled(true, false), handled(false, false), handled(true, true) })
  end)
end)
