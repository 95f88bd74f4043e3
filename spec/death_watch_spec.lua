local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("death watch", function()
  local kit = new_kit.each(before_each, after_each)

  local function ignore() end

  --- An actor that does what it is told with `on.do_it`, and lists in `seen` all else that it gets.
  local function watcher(seen)
    return kit().system:spawn(function(actor, message)
      if type(message) == "function" then return message(actor) end
      local is_notice = troupe.is(message, troupe.Terminated)
      seen[#seen + 1] = is_notice and "dead " .. message.actor.name or message
    end)
  end

  it("WATCH-1 tells once of a death, however often it was called, and gives the ref", function()
    local seen, same = {}, nil
    local target = kit().system:spawn(ignore, "target")
    watcher(seen):tell(function(actor)
      same = actor:watch(target) == target
      actor:watch(target)
    end)
    kit():settle()

    target:stop()
    kit():settle()

    assert.is_true(same)
    assert.are.same({ "dead target" }, seen)
  end)

  it("WATCH-1 tells of it after all that the dead had told", function()
    local seen = {}
    local first = watcher(seen)
    local target = kit().system:spawn({
      receive = function(actor, message)
        first:tell(message)
        actor:stop()
      end,
      post_stop = function() first:tell("last words") end,
    }, "target")
    first:tell(function(actor) actor:watch(target) end)
    kit():settle()

    target:tell("first words")
    kit():settle()

    assert.are.same({ "first words", "last words", "dead target" }, seen)
  end)

  it("WATCH-2 tells at once of one that has stopped before", function()
    local seen = {}
    local target = kit().system:spawn(ignore, "target")
    target:stop()
    kit():settle()

    watcher(seen):tell(function(actor) actor:watch(target) end)
    kit():settle()

    assert.are.same({ "dead target" }, seen)
  end)

  it("WATCH-2 unwatch takes back a notice that is queued already", function()
    local seen = {}
    local target = kit().system:spawn(ignore, "target")
    watcher(seen):tell(function(actor)
      actor:watch(target)
      target:stop()
      troupe.sleep(10) -- the notice comes into the mailbox meanwhile
      actor:unwatch(target)
    end)
    kit():advance(20)

    assert.are.same({}, seen)
  end)

  it("WATCH-2 takes a restart for no death", function()
    local seen = {}
    local target = kit().system:spawn(function() error("restart") end, "target")
    watcher(seen):tell(function(actor) actor:watch(target) end)
    target:tell("fail")
    kit():settle()
    assert.are.same({}, seen)

    target:stop()
    kit():settle()
    assert.are.same({ "dead target" }, seen)
  end)

  it("WATCH-3 watch_with gives a message instead; the last call wins", function()
    local seen = {}
    local target = kit().system:spawn(ignore, "target")
    watcher(seen):tell(function(actor)
      actor:watch(target)
      actor:watch_with(target, "first")
      actor:watch_with(target, "last")
    end)
    kit():settle()

    target:stop()
    kit():settle()

    assert.are.same({ "last" }, seen)
  end)

  it("WATCH-4 keeps the watches over a restart of the watcher", function()
    local seen = {}
    local target = kit().system:spawn(ignore, "target")
    local first = watcher(seen)
    first:tell(function(actor)
      actor:watch(target)
      error("restart")
    end)
    kit():settle()

    target:stop()
    kit():settle()

    assert.are.same({ "dead target" }, seen)
  end)

  it("WATCH-4 ends the watches with the watcher", function()
    local dead = 0
    kit().system.events:subscribe(function() dead = dead + 1 end, "dead_letter")
    local target = kit().system:spawn(ignore, "target")
    local first = watcher {}
    first:tell(function(actor) actor:watch(target) end)
    first:stop()
    kit():settle()

    target:stop()
    kit():settle()

    assert.are.equal(0, dead)
  end)

  it("WATCH-5 gives true when it stops in time, and a TimeoutError when not", function()
    local target = kit().system:spawn(ignore, "target")
    local late = kit():async(function() return target:await_stop(10) end)
    kit():advance(10)
    local ok, err = late:await()
    assert.is_nil(ok)
    assert.is_true(troupe.is_error(err, "TimeoutError"))

    local in_time = kit():async(function() return target:await_stop(10) end)
    target:stop()
    kit():settle()

    assert.is_true(in_time:await())
    assert.is_true(target:await_stop(1)) -- on the main chunk, of one that has stopped
  end)

  it("WATCH-6 tells notices from other messages, also from tables that look like them", function()
    local target = kit().system:spawn(ignore)
    assert.is_false(troupe.is({ actor = target }, troupe.Terminated))
    assert.is_false(troupe.is("Terminated", troupe.Terminated))
    assert.is_true(troupe.is(troupe.PoisonPill, troupe.PoisonPill))
    assert.is_false(troupe.is(nil, nil))
  end)

  it("MBX-5 sheds no death notice from a full mailbox", function()
    local seen = {}
    local target = kit().system:spawn(ignore, "target")
    local full = kit().system:spawn(function(actor, message)
      if message == "watch" then
        actor:watch(target)
        troupe.sleep(10)
      else
        seen[#seen + 1] = troupe.is(message, troupe.Terminated) and "dead" or message
      end
    end, nil, { mailbox = { capacity = 1, overflow = "drop-head" } })
    full:tell("watch")
    kit():settle()

    target:stop()
    full:tell("a")
    full:tell("b")
    kit():advance(20)

    table.sort(seen)
    assert.are.same({ "b", "dead" }, seen)
  end)

  it("ERR-2 refuses what cannot be watched", function()
    local why = {}
    local actor_ref = kit().system:spawn(function(actor)
      for _, target in ipairs { actor.ref, actor.sender, "actor" } do
        why[#why + 1] = tostring(select(2, pcall(actor.watch, actor, target)))
      end
      actor:reply(true)
    end)

    actor_ref:ask("try")

    assert.matches("an actor cannot watch itself", why[1])
    assert.matches("a reply ref does not stop", why[2])
    assert.matches("the target must be a ref %(got string%)", why[3])
  end)

  it("WATCH-3 stops the watcher with the pill that it asked for", function()
    local target = kit().system:spawn(ignore)
    local observer = kit().system:spawn(function(actor)
      actor:watch_with(target, troupe.PoisonPill)
    end)
    observer:tell("watch")
    kit():settle()

    target:stop()
    kit():settle()

    assert.are.equal("stopped", kit().system:inspect(observer).state)
  end)

  -- CPU time of watching and unwatching n actors, half of which have stopped.
  local function cost_of_watching(n)
    local seconds
    local targets = {}
    for i = 1, n do
      targets[i] = kit().system:spawn(ignore)
      if i % 2 == 0 then targets[i]:stop() end
    end
    kit():settle()
    kit().system:spawn(function(actor)
      local began = os.clock()
      for _, target in ipairs(targets) do actor:watch(target) end
      for _, target in ipairs(targets) do actor:unwatch(target) end
      seconds = os.clock() - began
    end):tell("go")
    kit():settle()
    for _, target in ipairs(targets) do target:stop() end
    return seconds
  end

  it("WATCH-1 costs no more for each when one actor watches many", function()
    cost_of_watching(1000)
    local few, many = cost_of_watching(1000), cost_of_watching(32000)

    assert.is_true(many < few * 32 * 6, ("%g s, %g s"):format(few, many))
  end)

  it("WATCH-5 costs no more for each when many wait for one actor, and leaves nothing", function()
    local function cost(n)
      local ref = kit().system:spawn(ignore)
      kit():settle()
      collectgarbage()
      collectgarbage("stop") -- what coroutines cost the collector is not the point
      local began = os.clock()
      for _ = 1, n do kit().system:go(function() ref:await_stop(10) end) end
      kit():settle()
      local seconds = os.clock() - began
      collectgarbage("restart")
      assert.are.equal(n, kit().system:inspect(ref).watchers)
      kit():advance(10)
      assert.are.equal(0, kit().system:inspect(ref).watchers)
      return seconds
    end
    cost(1000)
    local few, many = cost(1000), cost(8000)

    assert.is_true(many < few * 8 * 6, ("%g s, %g s"):format(few, many))
  end)
end)

describe("killing", function()
  local kit = new_kit.each(before_each, after_each)

  it("SUP-11 fails the actor ahead of its mail", function()
    local seen, reason = {}, nil
    local ref = kit().system:spawn({
      receive = function(_, message) seen[#seen + 1] = message end,
      pre_restart = function(_, why) reason = why end,
    })
    kit():settle()
    ref:tell("a")

    ref:kill()
    assert.is_nil(reason) -- never inline
    kit():settle()

    assert.are.equal("ActorKilledError", reason.name)
    assert.are.same({ "a" }, seen) -- by the next incarnation
  end)

  it("SUP-11 does not wait for a parked handler, which is closed", function()
    local seen = {}
    local ref = kit().system:spawn({
      receive = function()
        local _ <close> = setmetatable({}, { __close = function() seen[#seen + 1] = "closed" end })
        troupe.sleep(1000)
        seen[#seen + 1] = "resumed"
      end,
      pre_restart = function() seen[#seen + 1] = ("restart at %g"):format(kit():now()) end,
    })
    ref:tell("wait")
    kit():advance(10)

    ref:kill()
    kit():advance(2000)

    assert.are.same({ "closed", "restart at 10" }, seen)
  end)

  it("SUP-11 is for the strategy to answer", function()
    local ref = kit().system:spawn(function() end, nil,
      { supervisor_strategy = troupe.stopping_strategy })

    ref:kill()
    kit():settle()

    assert.are.equal(0, kit().system:stats().actors)
    ref:kill() -- of a dead one: nothing
  end)

  it("SUP-11 by the message troupe.Kill comes in its turn", function()
    local seen = {}
    local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end, nil,
      { supervisor_strategy = troupe.stopping_strategy })
    ref:tell("a")
    ref:tell(troupe.Kill)
    ref:tell("b")
    kit():settle()

    assert.are.same({ "a" }, seen)
  end)

  it("SUP-3 holds a kill back while the actor is suspended", function()
    local seen = {}
    local child
    local parent = kit().system:spawn({
      pre_start = function(actor)
        child = child or actor:spawn({
          receive = function() end,
          pre_restart = function() seen[#seen + 1] = ("restart at %g"):format(kit():now()) end,
        })
      end,
      receive = function() error("restart") end,
      pre_restart = function() troupe.sleep(50) end,
      stop_children_on_restart = false,
    })
    kit():settle()
    parent:tell("fail")
    kit():advance(10)

    child:kill()
    kit():advance(100)

    assert.are.same({ "restart at 50" }, seen)
  end)
end)
