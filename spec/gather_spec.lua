local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function mute() end

describe("gathering", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  -- Routees of which each does after its own time what `plan` says: a number is an answer after so
  -- long, a string a failure after 1 ms, nil no answer.
  local function routee(plan)
    return function(actor, message)
      local what = plan[actor.name]
      if type(what) == "number" then
        troupe.sleep(what)
        actor:reply(actor.name .. ":" .. tostring(message))
      elseif what then
        troupe.sleep(1)
        actor:fail(what)
      end
    end
  end

  local function summary(list)
    local lines = {}
    for i, reply in ipairs(list) do lines[i] = reply.routee.name .. " " .. tostring(reply.value) end
    return lines
  end

  describe("Router.scatter_gather", function()
    local function waiting(plan, options, size)
      return spawn(Router.scatter_gather(size or 3, routee(plan), options))
    end

    it("SG-17 waits for all unless told otherwise, and lists them in the order asked", function()
      local pool = waiting { ["routee-1"] = 30, ["routee-2"] = 10, ["routee-3"] = 20 }

      local list, err, from = pool:ask("k")

      assert.are.same(
        { "routee-1 routee-1:k", "routee-2 routee-2:k", "routee-3 routee-3:k" }, summary(list))
      assert.is_nil(err)
      assert.are.equal(pool, from)
      assert.are.equal(30, kit():now())
    end)

    it("SG-17 answers when as many have replied as are needed", function()
      local plan = { ["routee-1"] = 30, ["routee-2"] = 10, ["routee-3"] = 20, ["routee-4"] = 5 }
      local expected = {
        { wait_for = 1, at = 5, names = { "routee-4" } },
        { wait_for = 2, at = 10, names = { "routee-2", "routee-4" } },
        { wait_for = "majority", at = 20, names = { "routee-2", "routee-3", "routee-4" } },
        { wait_for = 4, at = 30, names = { "routee-1", "routee-2", "routee-3", "routee-4" } },
        { wait_for = "all", at = 30, names = { "routee-1", "routee-2", "routee-3", "routee-4" } },
      }
      for _, case in ipairs(expected) do
        local pool = waiting(plan, { wait_for = case.wait_for }, 4)
        local began, names = kit():now(), {}

        for i, reply in ipairs((pool:ask("k"))) do names[i] = reply.routee.name end

        assert.are.same(case.names, names)
        assert.are.equal(case.at, kit():now() - began)
      end
    end)

    it("SG-17 takes more than half for a majority, of an even number too", function()
      for size, needed in pairs { [1] = 1, [2] = 2, [3] = 2, [4] = 3, [5] = 3 } do
        local pool = spawn(Router.scatter_gather(size, function(actor) actor:reply(true) end,
          { wait_for = "majority" }))

        assert.are.equal(needed, #(pool:ask("k")))
      end
    end)

    it("SG-17 replies may be nil, false, tables and refs", function()
      local given = { false, { "x" }, kit().system:spawn(mute) }
      local pool = spawn(Router.scatter_gather(4, function(actor)
        actor:reply(given[tonumber(actor.name:match("%d"))])
      end))

      local list = pool:ask("k")

      for i = 1, 3 do assert.are.equal(given[i], list[i].value) end
      assert.are.equal(4, #list)
      assert.is_nil(list[4].value)
    end)

    it("SG-17 answers a tell with a sender", function()
      local got
      local caller = spawn(function(actor, list) got = { summary(list), actor.sender } end)
      local pool = waiting({ ["routee-1"] = 1, ["routee-2"] = 1 }, nil, 2)

      pool:tell("k", caller)
      kit():advance(1)

      assert.are.same({ "routee-1 routee-1:k", "routee-2 routee-2:k" }, got[1])
      assert.are.equal(pool, got[2])
    end)

    it("SG-17 fails as soon as there cannot be enough replies", function()
      local pool = waiting({ ["routee-1"] = "a", ["routee-2"] = "b", ["routee-3"] = 50 },
        { wait_for = 2 })

      local list, err = pool:ask("k")

      assert.is_nil(list)
      assert.are.equal("AggregateError", err.name)
      assert.is_truthy(err.message:find(
        "2 of 3 routees failed, and 2 replies were needed", 1, true))
      assert.are.same({ "a", "b" }, err.errors)
      assert.are.same({ "routee-1", "routee-2" }, { err.routees[1].name, err.routees[2].name })
      assert.are.equal(1, kit():now())
    end)

    it("SG-17 goes on after failures that leave enough", function()
      local pool = waiting({ ["routee-1"] = "a", ["routee-2"] = 10, ["routee-3"] = 20 },
        { wait_for = 2 })

      assert.are.same({ "routee-2 routee-2:k", "routee-3 routee-3:k" }, summary((pool:ask("k"))))
    end)

    it("SG-17 says at the deadline how many replied, and who did not", function()
      local pool = waiting({ ["routee-1"] = 5, ["routee-2"] = "b" },
        { wait_for = 2, timeout_ms = 20 })
      local all = waiting({ ["routee-2"] = 5 }, { timeout_ms = 20 })

      local _, impossible = pool:ask("k")
      local _, late = all:ask("k")
      local _, none = waiting({}, { timeout_ms = 20 }):ask("k")

      assert.is_truthy(impossible.message:find(
        "only 1 of 3 routees replied within 20ms, and 2 were needed", 1, true))
      assert.are.equal(2, #impossible.errors)
      assert.are.equal("b", impossible.errors[1])
      assert.are.equal("AskTimeoutError", impossible.errors[2].name)
      assert.is_truthy(late.message:find(
        "only 1 of 3 routees replied within 20ms, and 3 were needed", 1, true))
      assert.is_truthy(none.message:find("none of 3 routees replied within 20ms", 1, true))
    end)

    it("SG-17 fails at once when fewer routees are left than are needed", function()
      local asked = 0
      local pool = spawn(Router.scatter_gather(3, function() asked = asked + 1 end,
        { wait_for = 3 }), "pool")
      kit():settle()
      kit().system:actor_selection("/user/pool/routee-1"):resolve_one():stop()
      kit():settle()

      local _, err = pool:ask("k")

      assert.is_truthy(err.message:find(
        "only 2 routees are left, and 3 replies were needed", 1, true))
      assert.are.same({}, err.errors)
      assert.are.equal(0, asked)
    end)

    it("SG-17 fails as other gathering routers do when nobody is left, or it stops", function()
      local pool = waiting({}, {}, 1)
      local asking = kit():async(function() return pool:ask("k") end)
      kit():settle()
      pool:stop()

      local _, err = asking:await()

      assert.is_truthy(err.message:find("stopped while the scatter was still open", 1, true))
    end)

    it("SG-17 fails a list of lists of lists that is more than a hundred deep", function()
      for depth, fails in pairs { [99] = false, [150] = true } do
        local pool
        pool = spawn(Router.scatter_gather(1, function(actor, left)
          if left.n == 0 then return actor:reply("deep down") end
          left.n = left.n - 1
          actor:forward(pool)
        end))

        local list, err = pool:ask { n = depth }

        if fails then
          while err.errors[1] do err = err.errors[1] end
          assert.is_truthy(err.message:find("scatters are nested more than 100 deep", 1, true))
        else
          for _ = 0, depth do list = list[1].value end
          assert.are.equal("deep down", list)
        end
      end
    end)

    it("SG-17 lets wait_for be more than the size where a resizer may add routees", function()
      local function make(upper_bound)
        local made = Router.scatter_gather(2, mute,
          { wait_for = 4, resizer = { lower_bound = 2, upper_bound = upper_bound } })
        return made
      end
      local text = raised_here(function() make(3) end, make)

      assert.is_truthy(
        text:find("wait_for must be at most the resizer's upper_bound, 3 (got 4)", 1, true), text)
      local _, err = spawn(make(4)):ask("k")
      assert.is_truthy(err.message:find(
        "only 2 routees are left, and 4 replies were needed", 1, true))
    end)

    it("SG-17 checks wait_for where it is called", function()
      for _, wrong in ipairs { 0, -1, 1.5, "most", true, 0 / 0, 4 } do
        local text = raised_here(function()
          local _ = Router.scatter_gather(3, mute, { wait_for = wrong })
        end)
        assert.is_truthy(text:find("wait_for must be", 1, true), text)
      end
    end)
  end)

  describe("ref:gather", function()
    -- What a gather gives, with the time of each.
    local function collect(...)
      local lines, began = {}, kit():now()
      for who, value, err in ... do
        local what = err == nil and tostring(value)
          or troupe.is_error(err) and err.name or "failed " .. tostring(err)
        lines[#lines + 1] = ("%s %s %d"):format(who.name, what, kit():now() - began)
      end
      return lines
    end

    local plan = { ["routee-1"] = 30, ["routee-2"] = "broken", ["routee-3"] = 20 }
    local expected = { "routee-2 failed broken 1", "routee-3 routee-3:k 20",
      "routee-1 routee-1:k 30" }

    it("SG-18 gives each answer and failure of a broadcast router as it comes", function()
      local pool = spawn(Router.broadcast(3, routee(plan)))

      assert.are.same(expected, collect(pool:gather("k")))
    end)

    it("SG-18 asks all routees of a router that gathers, whichever it is", function()
      local makers = {
        Router.scatter_gather_first_completed,
        Router.hedged,
        Router.tail_chopping,
        Router.scatter_gather,
      }
      for _, make in ipairs(makers) do
        local pool = spawn(make(3, routee(plan)))

        assert.are.same(expected, collect(pool:gather("k")))
      end
    end)

    it("SG-18 takes every answer to a Broadcast at any pool", function()
      for _, make in ipairs { Router.round_robin, Router.random, Router.smallest_mailbox } do
        local pool = spawn(make(3, routee(plan)))

        assert.are.same(expected, collect(pool:gather(Broadcast("k"))))
      end
    end)

    it("SG-18 takes every answer to a Broadcast at a group", function()
      local members = {}
      for n = 1, 3 do members[n] = spawn(routee(plan), "routee-" .. n) end
      local group = spawn(Router.group("round_robin", members))

      assert.are.same(expected, collect(group:gather(Broadcast("k"))))
    end)

    it("SG-18 takes the one answer of a plain actor, and of a router that picks", function()
      local echo = spawn(function(actor, message) actor:reply(message) end, "echo")
      local pool = spawn(Router.round_robin(3, routee { ["routee-1"] = 5 }))

      assert.are.same({ "echo k 0" }, collect(echo:gather("k")))
      assert.are.same({ "routee-1 routee-1:k 5" }, collect(pool:gather("k")))
    end)

    it("SG-18 takes every answer of routers behind routers", function()
      local inner = Router.broadcast(2, function(actor)
        troupe.sleep(1)
        actor:reply(actor.parent.name .. "/" .. actor.name)
      end)
      local pool = spawn(Router.scatter_gather_first_completed(2, inner), "outer")
      local values = {}

      for _, value in pool:gather("k") do values[#values + 1] = value end

      table.sort(values)
      assert.are.same({ "routee-1/routee-1", "routee-1/routee-2", "routee-2/routee-1",
        "routee-2/routee-2" }, values)
    end)

    it("SG-18 takes every answer when a custom strategy sends it to several routers", function()
      local inner = Router.broadcast(2, function(actor)
        troupe.sleep(1)
        actor:reply(true)
      end)
      local pool = spawn(Router.custom(3, inner, function(routees) return routees end))

      assert.are.equal(6, #collect(pool:gather("k")))
    end)

    it("SG-18 takes every answer of those whom a custom strategy gives", function()
      local pool = spawn(Router.custom(4, routee(plan), function(routees)
        return { routees[1], routees[3], routees[3] }
      end))

      assert.are.same({ "routee-3 routee-3:k 20", "routee-1 routee-1:k 30",
        "routee-3 routee-3:k 40" }, collect(pool:gather("k")))
    end)

    it("SG-18 keeps no more of a message that has come through many routers", function()
      local system = kit().system
      for i = 1, 1000 do
        spawn(Router.group("broadcast", { "/user/group-" .. i + 1 }), "group-" .. i)
      end
      spawn(mute, "group-1001")
      kit():settle()
      local before = system:stats().engine_bytes

      local answers <close> = system:actor_selection("/user/group-1"):resolve_one():gather("k")
      kit():settle()

      assert.are.equal(1, system:stats().scatters)
      assert.is_true(system:stats().engine_bytes - before < 20000)
      assert.are.equal("group-1001", answers().name)
    end)

    it("SG-18 names at the deadline each that has not answered, and ends", function()
      local pool = spawn(Router.broadcast(3, routee { ["routee-2"] = 10 }))

      assert.are.same({ "routee-2 routee-2:k 10", "routee-1 AskTimeoutError 50",
        "routee-3 AskTimeoutError 50" }, collect(pool:gather("k", 50)))
    end)

    it("SG-18 has a deadline of 5,000 ms unless told otherwise", function()
      local ref = spawn(mute, "mute")

      assert.are.same({ "mute AskTimeoutError 5000" }, collect(ref:gather("k")))
    end)

    it("SG-18 keeps what comes while the loop does something else", function()
      local pool = spawn(Router.broadcast(3,
        routee { ["routee-1"] = 1, ["routee-2"] = 2, ["routee-3"] = 3 }))
      local lines = {}

      local looping = kit().system:go(function()
        for who in pool:gather("k", 50) do
          lines[#lines + 1] = ("%s %d"):format(who.name, kit():now())
          troupe.sleep(100)
        end
      end)
      looping:await()

      assert.are.same({ "routee-1 1", "routee-2 101", "routee-3 201" }, lines)
    end)

    it("SG-18 gives an answer that is nil", function()
      local ref = spawn(function(actor) actor:reply(nil) end, "quiet")

      assert.are.same({ "quiet nil 0" }, collect(ref:gather("k")))
    end)

    it("SG-18 fails at once for who has stopped, and for a pool without routees", function()
      local ref = spawn(mute, "gone")
      local pool = spawn(Router.broadcast(1, mute), "pool")
      local scatter = spawn(Router.scatter_gather_first_completed(1, mute), "scatter")
      kit():settle()
      for _, name in ipairs { "pool", "scatter" } do
        kit().system:actor_selection(("/user/%s/routee-1"):format(name)):resolve_one():stop()
      end
      ref:stop()
      kit():settle()

      assert.are.same({ "gone ActorStoppedError 0" }, collect(ref:gather("k")))
      assert.are.same({ "pool NoRouteesError 0" }, collect(pool:gather("k")))
      assert.are.same({ "scatter AggregateError 0" }, collect(scatter:gather("k")))
    end)

    it("SG-18 tells who stopped while it was asked", function()
      local pool = spawn(Router.broadcast(2, routee { ["routee-1"] = 10, ["routee-2"] = 20 }))

      local lines = collect(pool:gather("k"))
      assert.are.same({ "routee-1 routee-1:k 10", "routee-2 routee-2:k 20" }, lines)

      local stopping = kit():async(function() return collect(pool:gather("k")) end)
      kit():advance(10)
      kit().system:actor_selection(tostring(pool.path) .. "/routee-2"):resolve_one():kill()
      kit():advance(0)
      pool:stop()
      lines = stopping:await()
      assert.are.equal("routee-1 routee-1:k 10", lines[1])
      assert.are.equal(2, #lines)
    end)

    it("SG-18 ends with the loop that is left by break, return or an error", function()
      local pool = spawn(Router.broadcast(3, routee { ["routee-1"] = 1 }))
      local ways = {
        function() for _ in pool:gather("k") do break end end, -- luacheck: ignore 512
        function() for who in pool:gather("k") do return who end end, -- luacheck: ignore 512
        function() for _ in pool:gather("k") do error("enough") end end,
        function() local answers <close> = pool:gather("k") answers() end,
      }
      for _, leave in ipairs(ways) do
        pcall(leave)

        local stats = kit().system:stats()
        assert.are.equal(0, stats.scatters)
        assert.are.equal(0, stats.timers)
      end
    end)

    it("SG-18 ends with the handler that loops, when its actor stops", function()
      local pool = spawn(Router.broadcast(3, mute))
      local ref = spawn(function() for _ in pool:gather("k") do error("not reached") end end)
      ref:tell("go")
      kit():settle()
      assert.are.equal(1, kit().system:stats().scatters)

      ref:kill()
      kit():settle()

      assert.are.equal(0, kit().system:stats().scatters)
    end)

    it("SG-18 makes no dead letters of answers that come too late", function()
      local letters = 0
      kit().system.events:subscribe(function() letters = letters + 1 end, "dead_letter")
      local pool = spawn(Router.broadcast(3,
        routee { ["routee-1"] = 1, ["routee-2"] = 2, ["routee-3"] = 3 }))

      for _ in pool:gather("k") do break end -- luacheck: ignore 512
      kit():advance(10)

      assert.are.equal(0, letters)
    end)

    it("SG-18 cancels the losers of a router that cancels, when the loop is left", function()
      local ended = {}
      local pool = spawn(Router.scatter_gather(3, function(actor)
        local _, err = troupe.sleep(actor.name == "routee-1" and 1 or 1000)
        ended[#ended + 1] = err and err.name or "slept"
        actor:reply(true)
      end, { cancel_losers = true }))

      for _ in pool:gather("k") do break end -- luacheck: ignore 512
      kit():settle()

      assert.are.same({ "slept", "CancelledError", "CancelledError" }, ended)
    end)

    it("SG-18 gives nothing more once it has ended", function()
      local echo = spawn(function(actor) actor:reply(true) end)
      local answers <close> = echo:gather("k")

      assert.are.equal(echo, (answers()))
      assert.is_nil((answers()))
      assert.is_nil((answers()))
    end)

    it("SG-18 loses no answer when the coroutine that waited is resumed from outside", function()
      local pool = spawn(Router.broadcast(2, function(actor)
        troupe.sleep(10)
        actor:reply(true)
      end))
      local answers <close> = pool:gather("k")
      local names = {}
      local looping = coroutine.create(function()
        local ok, err = pcall(answers)
        names[1] = not ok and tostring(err):match("resumed from outside")
        for who in answers do names[#names + 1] = who.name end
      end)

      coroutine.resume(looping)
      coroutine.resume(looping)
      kit():advance(20)

      assert.are.same({ "resumed from outside", "routee-1", "routee-2" }, names)
    end)

    it("SG-18 says that the system has terminated", function()
      local ref = spawn(mute, "mute")
      kit().system:terminate()

      local told = {}
      for who, _, err in ref:gather("k") do told[#told + 1] = who.name .. " " .. err.name end

      assert.are.same({ "mute SystemTerminatedError" }, told)
    end)

    it("SG-18 ends at the end of the system", function()
      local pool = spawn(Router.broadcast(2, mute))
      local names = {}
      local looping = kit().system:go(function()
        for who, _, err in pool:gather("k") do names[#names + 1] = who.name .. " " .. err.name end
      end)
      kit():settle()

      kit().system:terminate()

      assert.are_not.equal("running", looping:status())
      assert.is_true(#names <= 2)
    end)

    it("SG-18 raises where one cannot wait, and for a wrong time-out", function()
      local echo = spawn(function(actor) actor:reply(true) end)
      for _, wrong in ipairs { 0, -1, 0 / 0, math.huge, "5" } do
        local text = raised_here(function() local _ = echo:gather("k", wrong) end)
        assert.is_truthy(text:find("gather: timeout_ms must be a positive", 1, true), text)
      end
      local problem
      kit().system:spawn(Router.custom(1, mute, function(routees)
        problem = select(2, pcall(function() return echo:gather("k") end))
        return routees
      end)):tell("x")
      kit():settle()
      assert.is_truthy(tostring(problem):find("gather: cannot wait here", 1, true))
    end)

    it("SG-18 lets one at a time wait for its next reply", function()
      local ref = spawn(mute)
      local answers <close> = ref:gather("k")
      local first = kit().system:go(function() return answers() end)
      kit():settle()
      local second = kit().system:go(function() return pcall(answers) end)
      kit():settle()

      local ok, err = second:await()
      assert.is_false(ok)
      assert.is_truthy(tostring(err):find("somebody waits for its next reply already", 1, true))
      first:cancel()
    end)
  end)
end)
