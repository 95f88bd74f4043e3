local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("spawning", function()
  local kit = new_kit.each(before_each, after_each)

  it("SPAWN-1 gives a ref that takes mail before the actor has started", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function() seen[#seen + 1] = "pre_start" end,
      receive = function(_, message) seen[#seen + 1] = message end,
    })
    ref:tell("first")
    ref:tell("second")
    assert.are.same({}, seen)

    kit():settle()

    assert.are.same({ "pre_start", "first", "second" }, seen)
  end)

  it("SPAWN-1 starts a child in a turn of the child's own", function()
    local seen = {}
    local parent = kit().system:spawn(function(actor)
      actor:spawn({
        pre_start = function() seen[#seen + 1] = "child starts" end,
        receive = function(_, message) seen[#seen + 1] = message end,
      }):tell("child's mail")
      seen[#seen + 1] = "parent's handler ends"
    end)
    parent:tell("spawn")
    kit():settle()

    assert.are.same({ "parent's handler ends", "child starts", "child's mail" }, seen)
  end)

  it("SPAWN-2 takes a function, a table of hooks, and what troupe.actor gives", function()
    local system = kit().system
    local function echo(actor, message) actor:reply(message) end
    local hooks = { receive = echo, pre_start = function(actor) actor.started = true end }

    assert.are.equal("a", (system:spawn(echo):ask("a")))
    assert.are.equal("b", (system:spawn(hooks):ask("b")))
    assert.are.equal("c", (system:spawn(troupe.actor(hooks)):ask("c")))
  end)

  it("SPAWN-2 takes what a router factory gives", function()
    local pool = troupe.Router.round_robin(1, function(actor) actor:reply(actor.name) end)

    assert.are.equal("routee-1", (kit().system:spawn(pool, "pool"):ask("who?")))
  end)

  it("SPAWN-2 spawns one behavior as often as one likes", function()
    local system = kit().system
    local behavior = troupe.actor {
      pre_start = function(actor) actor.count = 0 end,
      receive = function(actor)
        actor.count = actor.count + 1
        actor:reply(actor.count)
      end,
    }
    local first, second = system:spawn(behavior), system:spawn(behavior)

    assert.are.equal(1, (first:ask("count")))
    assert.are.equal(1, (second:ask("count")))
  end)

  it("SPAWN-2 refuses anything else and says what was given", function()
    local system = kit().system
    local function refused(behavior)
      return raised_here(function() system:spawn(behavior) end)
    end
    assert.matches("nil", refused(nil))
    assert.matches("42", refused(42))
    assert.matches("worker", refused("worker"))
    assert.matches("true", refused(true))
    assert.matches("thread", refused(coroutine.create(ignore)))
    assert.matches("receive.*42", refused({ receive = 42 }))
    assert.matches("post_stop.*true", refused({ receive = ignore, post_stop = true }))
    assert.are.equal(0, system:stats().actors)
  end)

  it("SPAWN-2 refuses a wrong behavior of a child at the line in the handler", function()
    local text
    kit().system:spawn(function(actor)
      text = raised_here(function() actor:spawn(42) end)
    end):tell("spawn")
    kit():settle()

    assert.matches("42", text)
  end)

  it("SPAWN-3 reads the options once", function()
    local stopped
    local options = { supervisor_strategy = troupe.stopping_strategy }
    local ref = kit().system:spawn({
      receive = function() error("fail") end,
      post_stop = function() stopped = true end,
      pre_restart = function() stopped = false end,
    }, "fragile", options)
    options.supervisor_strategy = troupe.default_strategy

    ref:tell("fail")
    kit():settle()

    assert.is_true(stopped)
  end)

  it("SPAWN-3 refuses an option that it does not know", function()
    local system = kit().system

    local text = raised_here(function() system:spawn(ignore, "a", { mailbx = {} }) end)

    assert.matches("mailbx", text)
    assert.are.equal(0, system:stats().actors)
    assert.are.equal("a", system:spawn(ignore, "a").name)
  end)

  it("SPAWN-3 refuses an option of the wrong type or range", function()
    local system = kit().system
    local function refused(options)
      return raised_here(function() system:spawn(ignore, "a", options) end)
    end
    assert.matches("supervisor_strategy.*42", refused { supervisor_strategy = 42 })
    assert.matches("supervisor_strategy.*stop", refused { supervisor_strategy = "stop" })
    assert.matches("throughput.*0", refused { throughput = 0 })
    assert.matches("throughput.*1%.5", refused { throughput = 1.5 })
    assert.matches("throughput.*many", refused { throughput = "many" })
    assert.matches("options", refused(42))
    assert.are.equal(0, system:stats().actors)
  end)

  it("SPAWN-4 gives every incarnation a fresh actor table", function()
    local actors, counts = {}, {}
    local ref = kit().system:spawn(function(actor, message)
      actor.count = (actor.count or 0) + 1
      actors[#actors + 1] = actor
      counts[#counts + 1] = actor.count
      if message == "fail" then error("restart") end
    end)
    for _, message in ipairs { "a", "fail", "b" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ 1, 2, 1 }, counts)
    assert.is_true(rawequal(actors[1], actors[2]))
    assert.is_false(rawequal(actors[2], actors[3]))
  end)

  it("SPAWN-4 refuses to write to a built-in name", function()
    local refused = {}
    kit().system:spawn(function(actor)
      for _, name in ipairs { "ref", "name", "sender", "reply", "spawn" } do
        refused[name] = not pcall(function() actor[name] = "mine" end)
      end
    end):tell("write")
    kit():settle()

    assert.are.same(
      { ref = true, name = true, sender = true, reply = true, spawn = true }, refused)
  end)

  --- Lets a child fail that was spawned with `options` by a parent with `strategy`, and tells
  --- which hook of the child ran.
  local function fate_of_child(strategy, options)
    local fate
    local fragile = {
      receive = function() error("fail") end,
      pre_restart = function() fate = "restarted" end,
      post_stop = function() fate = "stopped" end,
    }
    kit().system:spawn({
      supervisor_strategy = strategy,
      pre_start = function(actor) actor:spawn(fragile, "fragile", options):tell("fail") end,
      receive = ignore,
    })
    kit():settle()
    return fate
  end

  it("SPAWN-5 treats a failure as the child's own option says", function()
    local options = { supervisor_strategy = troupe.stopping_strategy }

    assert.are.equal("stopped", fate_of_child(troupe.default_strategy, options))
  end)

  it("SPAWN-5 treats a failure as the parent says when the child says nothing", function()
    assert.are.equal("stopped", fate_of_child(troupe.stopping_strategy, nil))
  end)

  it("SPAWN-5 restarts when neither says anything", function()
    assert.are.equal("restarted", fate_of_child(nil, nil))
  end)

  it("SPAWN-6 cannot spawn in post_stop", function()
    local text
    local ref = kit().system:spawn({
      receive = ignore,
      post_stop = function(actor)
        text = raised_here(function() actor:spawn(ignore) end)
      end,
    })
    ref:stop()
    kit():settle()

    assert.matches("stop", text)
    assert.are.equal(0, kit().system:stats().actors)
  end)

  it("SPAWN-6 cannot spawn after it has stopped itself in the same handler", function()
    local text
    kit().system:spawn(function(actor)
      actor:stop()
      text = raised_here(function() actor:spawn(ignore) end)
    end):tell("stop")
    kit():settle()

    assert.matches("stop", text)
    assert.are.equal(0, kit().system:stats().actors)
  end)

  it("SPAWN-6 cannot spawn while it waits for its children to stop", function()
    local parent
    local ref = kit().system:spawn({
      pre_start = function(actor)
        parent = actor
        actor:spawn({ receive = ignore, post_stop = function() troupe.sleep(50) end })
      end,
      receive = ignore,
    })
    kit():settle()
    ref:stop()
    kit():advance(10)

    assert.is_false(pcall(parent.spawn, parent, ignore))
  end)

  it("SPAWN-6 cannot spawn once it has stopped", function()
    local kept
    local ref = kit().system:spawn({
      pre_start = function(actor) kept = actor end,
      receive = ignore,
    })
    kit():settle()
    ref:stop()
    kit():settle()

    assert.is_false(pcall(kept.spawn, kept, ignore))
    assert.are.equal(0, kit().system:stats().actors)
  end)
end)
