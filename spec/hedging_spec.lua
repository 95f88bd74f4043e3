local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router = troupe.Router

local function mute() end

describe("asking one after another", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  -- Notes who is asked and when, and does what `plan` says: a number is the time to an answer, a
  -- string a failure at once, nil no answer.
  local function replica(plan, asked)
    return function(actor, message)
      local what = plan[actor.name]
      asked[#asked + 1] = { actor.name, kit():now() }
      if type(what) == "number" then
        if what > 0 then troupe.sleep(what) end
        actor:reply(actor.name .. ":" .. tostring(message))
      elseif what then
        actor:fail(what)
      end
    end
  end

  local function hedged(plan, options, size)
    local asked = {}
    return spawn(Router.hedged(size or 3, replica(plan, asked), options)), asked
  end

  describe("Router.hedged", function()
    it("SG-15 asks one routee only when its answer comes in time", function()
      local pool, asked = hedged({ ["routee-1"] = 9 }, { delay_ms = 10 })

      assert.are.equal("routee-1:k", (pool:ask("k")))

      assert.are.same({ { "routee-1", 0 } }, asked)
    end)

    it("SG-15 asks the next when the answer is late, and takes the first success", function()
      local pool, asked = hedged({ ["routee-1"] = 100, ["routee-2"] = 5 }, { delay_ms = 10 })

      local value, err, from = pool:ask("k")

      assert.are.same({ "routee-2:k", nil, "routee-2" }, { value, err, from.name })
      assert.are.same({ { "routee-1", 0 }, { "routee-2", 10 } }, asked)
      assert.are.equal(15, kit():now())
    end)

    it("SG-15 takes the answer of the first, when that comes before the hedge's", function()
      local pool = hedged({ ["routee-1"] = 12, ["routee-2"] = 5 }, { delay_ms = 10 })

      assert.are.equal("routee-1:k", (pool:ask("k")))
      assert.are.equal(12, kit():now())
    end)

    it("SG-15 asks one more each delay, each routee once", function()
      local pool, asked = hedged({}, { delay_ms = 10, timeout_ms = 100 })

      local _, err = pool:ask("k")

      assert.are.same({ { "routee-1", 0 }, { "routee-2", 10 }, { "routee-3", 20 } }, asked)
      assert.is_truthy(err.message:find("none of 3 routees replied within 100ms", 1, true))
      assert.are.equal(3, #err.errors)
      assert.are.equal(100, kit():now())
    end)

    it("SG-15 names in a time-out only those that it asked", function()
      local pool = hedged({}, { delay_ms = 60, timeout_ms = 100 })

      local _, err = pool:ask("k")

      assert.is_truthy(err.message:find("none of 2 routees replied within 100ms", 1, true))
      assert.are.equal(2, #err.errors)
    end)

    it("SG-15 asks the next at once after a failure, and then after a delay", function()
      local pool, asked = hedged({ ["routee-1"] = "broken", ["routee-3"] = 1 }, { delay_ms = 10 })

      assert.are.equal("routee-3:k", (pool:ask("k")))

      assert.are.same({ { "routee-1", 0 }, { "routee-2", 0 }, { "routee-3", 10 } }, asked)
    end)

    it("SG-15 fails when all have failed, in the order they were asked", function()
      local pool = hedged({ ["routee-1"] = "a", ["routee-2"] = "b", ["routee-3"] = "c" },
        { delay_ms = 10 })
      pool:ask("k")

      local _, err, from = pool:ask("k")

      assert.is_truthy(err.message:find("all 3 routees failed", 1, true))
      assert.are.same({ "b", "c", "a" }, err.errors)
      assert.are.equal(pool, from)
      assert.are.equal(0, kit():now())
    end)

    it("SG-15 begins with the routee whose turn it is", function()
      local pool = hedged({ ["routee-1"] = 0, ["routee-2"] = 0, ["routee-3"] = 0 },
        { delay_ms = 10 })
      local names = {}

      for i = 1, 4 do names[i] = select(3, pool:ask("k")).name end

      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-1" }, names)
    end)

    it("SG-15 spreads the hedges of one routee over all the others", function()
      local pool, asked = hedged({}, { delay_ms = 1, timeout_ms = 2, max_extra_load = 1 }, 4)
      local seconds = {}

      for _ = 1, 4 * 3 do
        pool:ask("k")
        local first, second = asked[#asked - 1][1], asked[#asked][1]
        seconds[first] = seconds[first] or {}
        table.insert(seconds[first], second)
      end

      assert.are.same({ "routee-2", "routee-3", "routee-4" }, seconds["routee-1"])
      assert.are.same({ "routee-1", "routee-2", "routee-3" }, seconds["routee-4"])
    end)

    it("SG-15 passes over a routee that has died at once", function()
      local asked = {}
      local pool = spawn(Router.hedged(3,
        replica({ ["routee-2"] = 1, ["routee-3"] = 1 }, asked),
        { delay_ms = 10, on_routee_stop = "keep" }), "pool")
      kit():settle()
      kit().system:actor_selection("/user/pool/routee-1"):resolve_one():stop()
      kit():settle()

      assert.are.equal("routee-2:k", (pool:ask("k")))
      assert.are.equal(1, kit():now())
    end)

    it("SG-15 stops hedging when nobody waits for the answer any more", function()
      local pool, asked = hedged({}, { delay_ms = 10, timeout_ms = 100 })

      pool:ask("k", 15)
      kit():advance(100)

      assert.are.equal(2, #asked)
    end)

    it("SG-15 hedges no more than max_extra_load of the requests, and ten at once", function()
      local pool, asked = hedged({}, { delay_ms = 1, timeout_ms = 5, max_extra_load = 0.05 }, 2)

      for _ = 1, 400 do pool:ask("k") end

      assert.are.equal(400 + 10 + 19, #asked) -- the bucket is full: the first earns nothing
    end)

    it("SG-15 lets max_extra_load be 0: only failures make it ask the next", function()
      local pool, asked = hedged({ ["routee-1"] = "broken", ["routee-3"] = 1 },
        { delay_ms = 10, timeout_ms = 50, max_extra_load = 0 })

      local _, err = pool:ask("k")

      assert.are.same({ { "routee-1", 0 }, { "routee-2", 0 } }, asked)
      assert.is_truthy(err.message:find("all 2 routees failed", 1, true))
    end)

    it("SG-15 does not count what a failure makes it ask against max_extra_load", function()
      local pool, asked = hedged({ ["routee-1"] = "broken", ["routee-2"] = 0 },
        { delay_ms = 10, max_extra_load = 0.001 }, 2)

      for _ = 1, 40 do assert.is_not_nil(pool:ask("k")) end

      assert.are.equal(60, #asked)
    end)

    it("SG-15 takes the delay from a percentile of its own latencies", function()
      local asked, slow = {}, false
      local pool = spawn(Router.hedged(2, function(actor, i)
        asked[#asked + 1] = actor.name
        local took = slow and 1000 or i
        slow = false
        troupe.sleep(took)
        actor:reply(i)
      end, { percentile = 0.9, max_extra_load = 10 }))
      for i = 1, 100 do
        pool:ask(i)
        kit():advance(100) -- no hedge is in the way of the next
      end
      local before, plain = kit():now(), #asked

      slow = true
      pool:ask(5)

      -- The bucket that holds 90 ms ends a sixteenth higher at most.
      local delay = kit():now() - before - 5
      assert.is_true(delay >= 90 and delay <= 90 * 17 / 16, delay)
      assert.are.equal(plain + 2, #asked)
    end)

    it("SG-15 does not hedge by a percentile before twenty answers are known", function()
      for _, known in ipairs { 19, 20 } do
        local asked, took = 0, 10
        local pool = spawn(Router.hedged(2, function(actor)
          asked = asked + 1
          local mine = took
          took = 10
          troupe.sleep(mine)
          actor:reply(true)
        end))
        for _ = 1, known do pool:ask("k") end
        asked, took = 0, 1000

        pool:ask("k")

        assert.are.equal(known == 20 and 2 or 1, asked)
      end
    end)

    it("SG-15 keeps the latencies of losers and of failures out of the percentile", function()
      local asked, plan = 0, {}
      local pool = spawn(Router.hedged(2, function(actor)
        asked = asked + 1
        local took = plan[asked]
        if took == "fails" then
          troupe.sleep(500)
          return actor:fail("broken")
        end
        troupe.sleep(took or 10)
        actor:reply(true)
      end, { percentile = 0.5, max_extra_load = 10 }))
      for _ = 1, 30 do pool:ask("k") end
      for _ = 1, 10 do -- a slow one loses to its hedge; a slow failure
        asked, plan = 0, { 400 }
        pool:ask("k")
        kit():advance(1000)
        asked, plan = 0, { "fails", "fails" }
        pool:ask("k")
      end
      asked, plan = 0, { 1000 }
      local before = kit():now()

      pool:ask("k")

      local delay = kit():now() - before - 10
      assert.is_true(delay >= 10 and delay <= 10 * 17 / 16, delay)
    end)

    it("SG-15 follows latencies that change", function()
      local took, asked = 10, 0
      local pool = spawn(Router.hedged(2, function(actor)
        asked = asked + 1
        troupe.sleep(took)
        actor:reply(true)
      end, { percentile = 0.95, max_extra_load = 0.01 }))
      for _ = 1, 3000 do pool:ask("k") end
      took = 40
      for _ = 1, 3000 do pool:ask("k") end
      asked = 0

      for _ = 1, 100 do pool:ask("k") end

      assert.are.equal(100, asked)
    end)

    it("SG-15 is not kept waiting longer and longer by a routee that never answers", function()
      local out = false
      local pool = spawn(Router.hedged(3, function(actor)
        if out and actor.name == "routee-2" then return end
        local who, took = actor.sender, 10 + 10 * kit().system:random()
        kit().system:schedule_once(took, function() who:tell(true) end)
      end, { max_extra_load = 2 }))
      for _ = 1, 600 do pool:ask("k") end
      out = true
      for _ = 1, 1200 do pool:ask("k") end

      local slowest = 0
      for _ = 1, 300 do
        local began = kit():now()
        pool:ask("k")
        slowest = math.max(slowest, kit():now() - began)
      end

      assert.is_true(slowest <= 45, slowest) -- a delay of 20 at most, and an answer
    end)

    it("SG-15 measures what hedges win while that is rare, be it several in a row", function()
      local asked, is_late = 0, false
      local pool = spawn(Router.hedged(2, function(actor)
        asked = asked + 1
        local who, first = actor.sender, asked == 1
        local took = is_late and (first and 1000 or 40) or 10
        kit().system:schedule_once(took, function() who:tell(true) end)
      end, { percentile = 0.95, max_extra_load = 10 }))
      for n = 1, 1000 do -- the last six of each hundred are late
        is_late, asked = n % 100 > 93, 0
        pool:ask("k")
      end
      is_late, asked = true, 0
      local before = kit():now()

      pool:ask("k")

      local delay = kit():now() - before - 40
      assert.is_true(delay > 40, delay)
    end)

    it("SG-15 saves up tokens of ten to twenty seconds for when a routee pauses", function()
      local cases = { -- requests, 9 ms apart; the quiet time before the pause; hedges in it
        { requests = 1000, quiet = 0, hedges = 50 + 3 },
        { requests = 1000, quiet = 1000, hedges = 50 + 3 }, -- ten seconds after the first
        { requests = 1000, quiet = 20000, hedges = 10 + 2 },
        { requests = 10, quiet = 0, hedges = 10 + 2 },
      }
      for _, case in ipairs(cases) do
        local pause, asked = false, 0
        local pool = spawn(Router.hedged(2, function(actor)
          asked = asked + 1
          if not pause then actor:reply(true) end
        end, { delay_ms = 1, timeout_ms = 2, max_extra_load = 0.05 }))
        for _ = 1, case.requests do
          pool:ask("k")
          kit():advance(9)
        end
        kit():advance(case.quiet)
        pause, asked = true, 0

        for _ = 1, 60 do pool:ask("k") end

        assert.are.equal(60 + case.hedges, asked)
      end
    end)

    it("SG-15 checks its options where it is called", function()
      local function raises(options, message)
        local text = raised_here(function() local _ = Router.hedged(3, mute, options) end)
        assert.is_truthy(text:find(message, 1, true), text)
      end
      raises({ delay_ms = 0 }, "delay_ms must be a positive finite number")
      raises({ percentile = 1 }, "percentile must be a number between 0 and 1")
      raises({ percentile = 0 / 0 }, "percentile must be a number between 0 and 1")
      raises({ percentile = "95" }, "percentile must be a number between 0 and 1")
      raises({ max_extra_load = -0.1 }, "max_extra_load must be a finite number")
      raises({ delay_ms = 5, percentile = 0.9 },
        "delay_ms and percentile exclude each other")
      raises({ interval_ms = 5 }, 'unknown option "interval_ms"')
    end)
  end)

  describe("Router.tail_chopping", function()
    local function tail_chopping(plan, options, size)
      local asked = {}
      return spawn(Router.tail_chopping(size or 3, replica(plan, asked), options)), asked
    end

    it("SG-16 asks one more each interval, each once, and takes the first success", function()
      local pool, asked = tail_chopping({}, { interval_ms = 10, timeout_ms = 100 }, 4)

      local _, err = pool:ask("k")

      local names, times = {}, {}
      for i, ask in ipairs(asked) do names[i], times[i] = ask[1], ask[2] end
      table.sort(names)
      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-4" }, names)
      assert.are.same({ 0, 10, 20, 30 }, times)
      assert.is_truthy(err.message:find("none of 4 routees replied within 100ms", 1, true))
    end)

    it("SG-16 asks in random order: every order comes", function()
      local seen, orders = {}, 0
      local pool, asked = tail_chopping({}, { interval_ms = 1, timeout_ms = 3 }, 3)
      for _ = 1, 200 do
        pool:ask("k")
        local order = {}
        for i = 1, 3 do order[i] = table.remove(asked, 1)[1] end
        order = table.concat(order, " ")
        if not seen[order] then seen[order], orders = true, orders + 1 end
      end

      assert.are.equal(6, orders)
    end)

    it("SG-16 asks the next at once after a failure", function()
      local pool, asked = tail_chopping({ ["routee-1"] = "a", ["routee-2"] = "b",
        ["routee-3"] = "c" }, { interval_ms = 10 })

      local _, err = pool:ask("k")

      assert.are.equal(3, #asked)
      assert.is_truthy(err.message:find("all 3 routees failed", 1, true))
      assert.are.equal(0, kit():now())
    end)

    it("SG-16 answers in the name of who replied", function()
      local pool = tail_chopping({ ["routee-1"] = 3, ["routee-2"] = 3 }, { interval_ms = 10 }, 2)

      local value, err, from = pool:ask("k")

      assert.are.same({ from.name .. ":k", nil }, { value, err })
    end)

    it("SG-16 has an interval of 10 ms unless told otherwise", function()
      local pool, asked = tail_chopping({}, { timeout_ms = 15 }, 2)

      pool:ask("k")

      assert.are.equal(10, asked[2][2])
    end)

    it("SG-16 checks its options where it is called", function()
      local function raises(options, message)
        local text = raised_here(function() local _ = Router.tail_chopping(3, mute, options) end)
        assert.is_truthy(text:find(message, 1, true), text)
      end
      raises({ interval_ms = -1 }, "interval_ms must be a positive finite number")
      raises({ delay_ms = 1 }, 'unknown option "delay_ms"')
    end)
  end)
end)
