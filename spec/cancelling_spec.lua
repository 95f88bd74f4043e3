local troupe = require "troupe"
local new_kit = require "spec.support.kit"

local Router = troupe.Router
local first_completed = Router.scatter_gather_first_completed

describe("cancelling losers", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  local function queued(ref) return kit().system:inspect(ref).queued end

  local function routee(n)
    return (kit().system:actor_selection("/user/replicas/routee-" .. n):resolve_one())
  end

  -- Two replicas of which the first is busy with "block" until time is 100.
  local function one_is_busy(receive, routee_options)
    local pool = spawn(first_completed(2, function(actor, message)
      if message == "block" then return troupe.sleep(100) end
      receive(actor, message)
    end, { cancel_losers = true }, routee_options), "replicas")
    kit():settle()
    routee(1):tell("block")
    kit():settle()
    return pool
  end

  it("SG-14 withdraws a losing request that is still queued", function()
    local handled = {}
    local pool = one_is_busy(function(actor, message)
      handled[#handled + 1] = actor.name
      actor:reply(message)
    end)

    assert.are.equal("k", (pool:ask("k")))
    assert.are.equal(0, queued(routee(1)))

    kit():advance(200)
    assert.are.same({ "routee-2" }, handled)
  end)

  it("SG-14 takes it from among other mail, which keeps its order", function()
    local handled = {}
    local pool = one_is_busy(function(actor, message)
      if actor.name == "routee-1" then handled[#handled + 1] = message end
      actor:reply(message)
    end)
    routee(1):tell("before")
    local asking = kit():async(function() return pool:ask("k") end)
    routee(1):tell("after")

    assert.are.equal("k", (asking:await()))
    kit():advance(200)

    assert.are.same({ "before", "after" }, handled)
  end)

  it("SG-14 takes it from any place of a long queue", function()
    local caller = spawn(function() end)
    for place = 1, 12 do
      local handled, expected = {}, {}
      local pool = one_is_busy(function(actor, message)
        if actor.name == "routee-1" then
          handled[#handled + 1] = message
        else
          troupe.sleep(10)
          actor:reply(message)
        end
      end)
      for i = 1, 12 do
        if i == place then
          pool:tell("k", caller)
          kit():settle()
        else
          routee(1):tell(i)
          expected[#expected + 1] = i
        end
      end
      kit():advance(200)

      assert.are.same(expected, handled)
      pool:stop()
      kit():settle()
    end
  end)

  it("SG-14 makes room in a full mailbox", function()
    local handled = {}
    local pool = one_is_busy(function(actor, message)
      if actor.name == "routee-1" then handled[#handled + 1] = message end
      actor:reply(message)
    end, { mailbox = { capacity = 1, overflow = "reject" } })
    pool:ask("k")

    assert.is_true(routee(1):tell("next"))
    kit():advance(200)

    assert.are.same({ "next" }, handled)
  end)

  it("SG-14 withdraws from a mailbox with priorities, ranked or not", function()
    local handled = {}
    local pool = one_is_busy(function(actor, message)
      if actor.name == "routee-1" then handled[#handled + 1] = message end
      actor:reply(message)
    end, { mailbox = { priority = function(message) return message == "low" and 9 or 1 end } })
    for _, message in ipairs { "low", "one", "two", "three", "low" } do routee(1):tell(message) end

    assert.are.equal("k", (pool:ask("k")))
    assert.are.equal(5, queued(routee(1)))
    kit():advance(200)

    assert.are.same({ "one", "two", "three", "low", "low" }, handled)
  end)

  it("SG-14 passes over a losing request that was set aside", function()
    local handled = {}
    local pool = spawn(first_completed(2, function(actor, message)
      if actor.name == "routee-2" then
        troupe.sleep(10)
        return actor:reply(message)
      end
      if message == "open" then
        actor:become(function(_, m) handled[#handled + 1] = m end)
        return actor:unstash_all()
      end
      actor:stash()
    end, { cancel_losers = true }), "replicas")
    pool:ask("k")

    routee(1):tell("open")
    routee(1):tell("next")
    kit():settle()

    assert.are.same({ "next" }, handled)
  end)

  it("SG-14 passes over a losing request that a router has passed on", function()
    local handled = {}
    local inner = Router.round_robin(1, function(actor, message)
      if message == "block" then return troupe.sleep(100) end
      handled[#handled + 1] = actor.path.name
      actor:reply(message)
    end)
    local pool = spawn(Router.custom(1, first_completed(2, inner, { cancel_losers = true }),
      function(routees) return routees end), "outer")
    local blocked = "/user/outer/routee-1/routee-1/routee-1"
    kit():settle()
    kit().system:actor_selection(blocked):tell("block")
    kit():settle()

    assert.are.equal("k", (pool:ask("k")))
    kit():advance(200)

    assert.are.same({ "routee-1" }, handled)
  end)

  it("SG-14 cancels through pools of pools", function()
    local ended = {}
    local options = { cancel_losers = true }
    local inner = first_completed(2, function(actor, message)
      local loses = actor.parent.name == "routee-2"
      local _, err = troupe.sleep(loses and 1000 or 10)
      ended[#ended + 1] = ("%s/%s %s"):format(actor.parent.name, actor.name, err and err.name)
      actor:reply(message)
    end, options)
    local pool = spawn(first_completed(2, inner, options))

    assert.are.equal("k", (pool:ask("k")))
    kit():settle()

    assert.are.equal(0, kit().system:stats().scatters)
    table.sort(ended)
    assert.are.same({ "routee-1/routee-1 nil", "routee-1/routee-2 nil",
      "routee-2/routee-1 CancelledError", "routee-2/routee-2 CancelledError" }, ended)
  end)

  it("SG-14 ends the wait of a losing handler with nil, CancelledError", function()
    local seen = {}
    local pool = spawn(first_completed(2, function(actor, message)
      local value, err = troupe.sleep(actor.name == "routee-1" and 10 or 1000)
      seen[actor.name] = { value = value, err = err, cancelled = actor:cancelled(),
        at = kit():now() }
      actor:reply(message)
    end, { cancel_losers = true }))

    assert.are.equal("k", (pool:ask("k")))
    kit():settle()

    assert.is_nil(seen["routee-1"].err)
    assert.is_false(seen["routee-1"].cancelled)
    assert.is_nil(seen["routee-2"].value)
    assert.is_true(troupe.is_error(seen["routee-2"].err, "CancelledError"))
    assert.is_true(seen["routee-2"].cancelled)
    assert.are.equal(10, seen["routee-2"].at)
  end)

  it("SG-14 ends the waits of all who have the losing request in hand", function()
    local ended = {}
    local times = { ["routee-1"] = 7, ["routee-2"] = 5, ["routee-3"] = 100, ["routee-4"] = 100 }
    local all = Router.broadcast(4, function(actor)
      local _, err = troupe.sleep(times[actor.name])
      ended[#ended + 1] = actor.name .. " " .. (err and err.name or "slept")
    end)
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      if actor.name == "routee-1" then return actor:forward(spawn(all)) end
      troupe.sleep(10)
      actor:reply(message)
    end, { cancel_losers = true }))

    pool:ask("k")
    kit():settle()

    table.sort(ended)
    assert.are.same({ "routee-1 slept", "routee-2 slept", "routee-3 CancelledError",
      "routee-4 CancelledError" }, ended)
  end)

  it("SG-14 ends an ask of a losing handler, and its gather", function()
    local errors = {}
    local mute = spawn(function() end)
    local pool = spawn(first_completed(3, function(actor, message)
      if actor.name == "routee-1" then
        local _, err = mute:ask("never")
        errors[1] = err.name
      elseif actor.name == "routee-2" then
        for _, _, err in mute:gather("never") do errors[2] = err end
        errors[2] = errors[2] or "ended"
      else
        troupe.sleep(10)
      end
      actor:reply(message)
    end, { cancel_losers = true }))

    pool:ask("k")
    kit():settle()

    assert.are.same({ "CancelledError", "ended" }, errors)
  end)

  it("SG-14 ends a losing handler at its next wait, its to-be-closed variables included", function()
    local log = {}
    local pool = spawn(first_completed(2, {
      receive = function(actor, message)
        if message == "again" then return actor:reply(actor.name) end
        local _ <close> = setmetatable({}, { __close = function()
          log[#log + 1] = "closed " .. actor.name
        end })
        if actor.name == "routee-1" then troupe.sleep(10) return actor:reply(message) end
        while true do troupe.sleep(1) end
      end,
      post_stop = function(actor) log[#log + 1] = "stopped " .. actor.name end,
    }, { cancel_losers = true }), "replicas")

    assert.are.equal("k", (pool:ask("k")))
    kit():settle()

    assert.are.same({ "closed routee-1", "closed routee-2" }, log)
    assert.are.equal("routee-2", (routee(2):ask("again")))
  end)

  it("SG-14 lets the losing actor go on with its next message", function()
    local pool = one_is_busy(function(actor, message)
      if actor.name == "routee-1" then troupe.sleep(50) end
      actor:reply(actor.name .. message)
    end)
    kit():advance(100)

    assert.are.equal("routee-2a", (pool:ask("a")))
    assert.are.equal("routee-1b", (routee(1):ask("b")))
    assert.are.equal(150, kit():now())
  end)

  it("SG-14 leaves losers alone unless it is asked for", function()
    local done = {}
    local pool = spawn(first_completed(2, function(actor, message)
      local _, err = troupe.sleep(actor.name == "routee-1" and 10 or 1000)
      done[#done + 1] = { actor.name, err, actor:cancelled() }
      actor:reply(message)
    end))

    pool:ask("k")
    kit():advance(1000)

    assert.are.same({ { "routee-1", nil, false }, { "routee-2", nil, false } }, done)
  end)

  it("SG-14 cancels at the deadline, and when the router stops", function()
    for _, how in ipairs { "deadline", "stop" } do
      local ended = 0
      local pool = spawn(first_completed(2, function()
        troupe.sleep(1000)
        ended = ended + 1
      end, { cancel_losers = true, timeout_ms = 20 }))
      local asking = kit():async(function() return pool:ask("k") end)
      if how == "stop" then
        kit():settle()
        pool:stop()
      end
      local _, err = asking:await()
      kit():settle()

      assert.are.equal("AggregateError", err.name)
      assert.are.equal(how == "deadline" and 2 or 0, ended)
    end
  end)

  it("SG-14 makes no dead letter of what it withdraws", function()
    local letters = 0
    kit().system.events:subscribe(function() letters = letters + 1 end, "dead_letter")
    local pool = one_is_busy(function(actor, message) actor:reply(message) end)
    pool:ask("k")
    kit():advance(200)
    pool:stop()
    kit():settle()

    assert.are.equal(0, letters)
  end)

  it("SG-14 tells an actor that has no request in hand that nothing is cancelled", function()
    local kept
    local ref = spawn(function(actor) kept = actor end)
    ref:tell("k")
    kit():settle()

    assert.is_false(kept:cancelled())
  end)

  it("SG-14 cancels what every router that gathers has asked in vain", function()
    local makers = {
      [Router.hedged] = { delay_ms = 1, cancel_losers = true },
      [Router.tail_chopping] = { interval_ms = 1, cancel_losers = true },
      [Router.scatter_gather] = { wait_for = 1, cancel_losers = true },
    }
    for make, options in pairs(makers) do
      local ended, slept = 0, 0
      local pool = spawn(make(3, function(actor, message)
        slept = slept + 1
        local _, err = troupe.sleep(slept == 3 and 5 or 1000)
        if err then ended = ended + 1 end
        actor:reply(message)
      end, options))

      assert.is_not_nil(pool:ask("k"))
      kit():settle()

      assert.are.equal(2, ended)
    end
  end)
end)
