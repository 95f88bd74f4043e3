local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast
local first_completed = Router.scatter_gather_first_completed

local function mute() end

local function dead_letters(kit)
  local letters = {}
  kit.system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
  return letters
end

local function names(errors)
  local list = {}
  for i, err in ipairs(errors) do list[i] = err.name end
  return list
end

describe("scatter/gather", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  local function replicas(size, routee, options, routee_options)
    return spawn(first_completed(size, routee, options, routee_options),
      "replicas")
  end

  -- Routees that answer with their name and the message, each after its own time.
  local function answering_after(delays)
    return function(actor, message)
      troupe.sleep(delays[actor.name])
      actor:reply(actor.name .. ":" .. message)
    end
  end

  -- An actor that notes what it is told, and by whom.
  local function collector()
    local got = {}
    local ref = spawn(function(actor, message)
      got[#got + 1] = { message = message, sender = actor.sender }
    end, "collector")
    return ref, got
  end

  local function routee(n)
    local path = "/user/replicas/routee-" .. n
    return (kit().system:actor_selection(path):resolve_one())
  end

  local function open_scatters() return kit().system:stats().scatters end

  describe("the first success", function()
    it("SG-1 answers an ask, when it is there", function()
      local pool = replicas(3,
        answering_after { ["routee-1"] = 30, ["routee-2"] = 10, ["routee-3"] = 20 })

      local value, err = pool:ask("k")

      assert.are.same({ "routee-2:k", nil }, { value, err })
      assert.are.equal(10, kit():now())
    end)

    it("SG-1 is attributed to the routee that gave it, in an ask", function()
      local pool = replicas(2, answering_after { ["routee-1"] = 20, ["routee-2"] = 10 })

      local _, _, from = pool:ask("k")

      assert.are.equal(routee(2), from)
    end)

    it("SG-1 is attributed to the routee that gave it, at an actor", function()
      local pool = replicas(2, answering_after { ["routee-1"] = 20, ["routee-2"] = 10 })
      local caller, got = collector()

      pool:tell("k", caller)
      kit():advance(20)

      assert.are.equal(1, #got)
      assert.are.equal("routee-2:k", got[1].message)
      assert.are.equal(routee(2), got[1].sender)
    end)

    it("SG-1 comes after every routee was asked, in order", function()
      local asked = {}
      local pool = replicas(3, function(actor, message)
        asked[#asked + 1] = actor.name
        actor:reply(message)
      end)

      pool:ask("k")
      kit():settle()

      assert.are.same({ "routee-1", "routee-2", "routee-3" }, asked)
    end)

    it("SG-1 may be nil, false, or a table that is no error value", function()
      for _, reply in ipairs { { nil }, { false }, { { message = "no disk" } } } do
        local pool = spawn(first_completed(2, function(actor)
          actor:reply(reply[1])
        end))

        local value, err = pool:ask("k")

        assert.are.equal(reply[1], value)
        assert.is_nil(err)
      end
    end)

    it("SG-1 hands every routee the message itself", function()
      local message, got = { "k" }, {}
      local pool = replicas(2, function(actor, request)
        got[#got + 1] = request
        actor:reply(true)
      end)

      pool:ask(message)
      kit():settle()

      assert.are.equal(message, got[1])
      assert.are.equal(message, got[2])
    end)

    it("SG-1 may be told to the reply ref later, by anyone", function()
      local helper = spawn(function(_, reply_to) reply_to:tell("from the helper") end)
      local pool = replicas(2, function(actor)
        if actor.name == "routee-2" then helper:tell(actor.sender) end
      end)

      assert.are.equal("from the helper", (pool:ask("k")))
    end)

    it("SG-1 may come after the routee that passed the request on has stopped", function()
      local helper = spawn(function(_, reply_to)
        troupe.sleep(20)
        reply_to:tell("from the helper")
      end)
      local pool = replicas(1, function(actor)
        helper:tell(actor.sender)
        actor:stop()
      end)

      assert.are.equal("from the helper", (pool:ask("k")))
    end)

    it("SG-1 answers each message of one caller on its own", function()
      local pool = replicas(2, function(actor, message)
        actor:reply(message)
      end)
      local caller, got = collector()

      for n = 1, 5 do pool:tell(n, caller) end
      kit():settle()

      local answers = {}
      for i, entry in ipairs(got) do answers[i] = entry.message end
      table.sort(answers)
      assert.are.same({ 1, 2, 3, 4, 5 }, answers)
    end)
  end)

  describe("a routee that fails fast", function()
    for _, entry in ipairs {
      { "replies with an error value", function(actor)
        actor:reply(troupe.error("Broken", "no disk"))
      end },
      { "fails with an error value", function(actor)
        actor:fail(troupe.error("Broken", "no disk"))
      end },
      { "fails with a string", function(actor) actor:fail("no disk") end },
    } do
      it("SG-2 is out of it when it " .. entry[1], function()
        local pool = replicas(3, function(actor, key)
          if actor.name == "routee-1" then return entry[2](actor) end
          if actor.name == "routee-3" then return end
          troupe.sleep(20)
          actor:reply("found " .. key)
        end, { timeout_ms = 100 })

        local value, err, from = pool:ask("k")

        assert.are.same({ "found k", nil }, { value, err })
        assert.are.equal(routee(2), from)
        assert.are.equal(20, kit():now())
      end)
    end

    it("SG-2 does not keep the last failure waiting for the deadline", function()
      local pool = replicas(2, function(actor)
        troupe.sleep(actor.name == "routee-1" and 30 or 10)
        actor:fail("no disk")
      end, { timeout_ms = 4000 })

      local _, err = pool:ask("k")

      assert.is_true(troupe.is_error(err, "AggregateError"))
      assert.are.equal(30, kit():now())
    end)

    it("SG-2 is out for good: a success it sends later does not count", function()
      local pool = replicas(2, function(actor)
        if actor.name == "routee-2" then return end
        actor:fail("no disk")
        actor:reply("changed my mind")
      end, { timeout_ms = 100 })

      local value, err = pool:ask("k")

      assert.is_nil(value)
      assert.are.equal("no disk", err.errors[1])
      assert.are.equal("AskTimeoutError", err.errors[2].name)
    end)
  end)

  describe("losers", function()
    it("SG-3 run to their end", function()
      local finished = {}
      local pool = replicas(3, function(actor, message)
        troupe.sleep(actor.name == "routee-2" and 10 or 20)
        finished[#finished + 1] = actor.name
        actor:reply(message)
      end)

      pool:ask("k")
      kit():advance(10)

      assert.are.same({ "routee-2", "routee-1", "routee-3" }, finished)
    end)

    it("SG-3 reply to nobody: no dead letter, no log, no second answer", function()
      local pool = replicas(3,
        answering_after { ["routee-1"] = 10, ["routee-2"] = 20, ["routee-3"] = 20 })
      local letters = dead_letters(kit())
      local caller, got = collector()

      pool:tell("k", caller)
      kit():advance(100)

      assert.are.equal(1, #got)
      assert.are.same({}, letters)
      assert.are.same({}, kit().logs)
    end)

    it("SG-3 may fail, or raise, without harm to the answer", function()
      local pool = replicas(3, function(actor, key)
        if actor.name == "routee-1" then return actor:reply("found " .. key) end
        troupe.sleep(10)
        if actor.name == "routee-2" then return actor:fail("no disk") end
        error("no network")
      end)
      local letters = dead_letters(kit())
      local caller, got = collector()

      pool:tell("k", caller)
      kit():advance(100)

      assert.are.equal(1, #got)
      assert.are.equal("found k", got[1].message)
      assert.are.same({}, letters)
    end)
  end)

  describe("without a reply target", function()
    local function warnings()
      local list = {}
      for _, record in ipairs(kit().logs) do
        if record.level == "warn" then list[#list + 1] = record end
      end
      return list
    end

    it("SG-4 scatters nothing, and warns with the path and what to do", function()
      local asked = 0
      local pool = replicas(3, function() asked = asked + 1 end)

      pool:tell("k")
      kit():settle()

      assert.are.equal(0, asked)
      assert.are.equal(1, #warnings())
      assert.are.equal("troupe://demo/user/replicas", tostring(warnings()[1].path))
      assert.matches("ask", warnings()[1].message)
      assert.matches("sender", warnings()[1].message)
    end)

    it("SG-4 takes itself for no reply target either", function()
      local asked = 0
      local pool = replicas(3, function() asked = asked + 1 end)

      pool:tell("k", pool)
      kit():advance(10000)

      assert.are.equal(0, asked)
      assert.are.equal(1, #warnings())
    end)

    it("SG-4 does not scatter the failure of another router", function()
      local function pool() return spawn(first_completed(1, mute, { timeout_ms = 10 })) end
      local one, other = pool(), pool()

      one:tell("k", other)
      kit():advance(1000)

      assert.are.equal(0, open_scatters())
      assert.are.equal(1, #warnings())
      assert.are.equal(tostring(other.path), tostring(warnings()[1].path))
    end)

    it("SG-4 does not warn of a warning that it was told of", function()
      local pool = spawn(first_completed(1, mute))
      local told = 0
      kit().system.events:subscribe(pool, "warning")
      kit().system.events:subscribe(function()
        told = told + 1
        if told == 10 then pool:stop() end
      end, "warning")

      pool:tell("bare")
      kit():settle()

      assert.are.equal(1, told)
    end)

    it("SG-4 disturbs neither the router nor the scatters that are open", function()
      local starts = 0
      local pool = replicas(2, {
        pre_start = function() starts = starts + 1 end,
        receive = function(actor, message)
          troupe.sleep(20)
          actor:reply(message)
        end,
      })
      local answer = kit():async(function() return pool:ask("k") end)
      kit():advance(10)

      pool:tell("nobody waits for this")
      kit():advance(10)

      assert.are.same({ "k" }, { (answer:await()) })
      assert.are.equal(20, kit():now())
      assert.are.equal(2, starts)
    end)

    it("SG-4 answers a tell from a handler that names itself as sender", function()
      local got
      local pool = replicas(2, function(actor, message) actor:reply("found " .. message) end)
      local client = spawn(function(actor, message)
        if message == "go" then pool:tell("k", actor.ref) else got = message end
      end)

      client:tell("go")
      kit():settle()

      assert.are.equal("found k", got)
    end)
  end)

  describe("a failure", function()
    it("SG-5 names each late routee and the budget", function()
      local pool = replicas(2, mute, { timeout_ms = 250 })

      local _, err = pool:ask("k")

      for i = 1, 2 do
        assert.matches("troupe://demo/user/replicas/routee%-" .. i .. ".*250",
          err.errors[i].message)
      end
    end)

    it("SG-5 says whose each failure is", function()
      local pool = replicas(3, function(actor)
        if actor.name ~= "routee-2" then actor:fail("no disk") end
      end, { timeout_ms = 250 })

      local _, err = pool:ask("k")

      assert.are.same({ routee(1), routee(2), routee(3) }, err.routees)
      assert.are.equal("no disk", err.errors[3])
    end)

    it("SG-5 counts the routees that were asked, not those the pool began with", function()
      local pool = replicas(3, mute, { timeout_ms = 250 })
      routee(2):stop()
      kit():settle()

      local _, err = pool:ask("k")

      assert.is_truthy(err.message:find("none of 2 routees replied within 250ms", 1, true))
      assert.are.equal(2, #err.errors)
    end)
  end)

  describe("timeout_ms", function()
    it("SG-6 is 4500 by default, so that an ask with defaults hears of the failure", function()
      local pool = replicas(3, mute)

      local _, err = pool:ask("k")

      assert.is_true(troupe.is_error(err, "AggregateError"), tostring(err))
      assert.is_truthy(err.message:find("none of 3 routees replied within 4500ms", 1, true))
      assert.are.equal(4500, kit():now())
    end)

    it("SG-6 above the caller's own timeout gives the caller AskTimeoutError", function()
      local pool = replicas(3, function(actor)
        troupe.sleep(100)
        actor:reply("late")
      end)
      local letters = dead_letters(kit())

      local _, err = pool:ask("k", 50)

      assert.is_true(troupe.is_error(err, "AskTimeoutError"), tostring(err))
      kit():advance(5000)
      assert.are.same({}, letters)
      assert.are.equal(0, open_scatters())
    end)

    it("SG-6 must be a positive finite number, which the factory call checks", function()
      for _, timeout in ipairs { 0, -250, -0.0, 0 / 0, 1 / 0, -1 / 0, "250", true, {} } do
        local text = raised_here(function() first_completed(3, mute, { timeout_ms = timeout }) end)
        assert.matches("timeout_ms must be a positive", text, 1, true)
      end
    end)

    it("SG-6 names what was given", function()
      local text = raised_here(function() first_completed(3, mute, { timeout_ms = -250 }) end)

      assert.matches("got %-250", text)
    end)

    it("SG-6 is read once", function()
      local options = { timeout_ms = 250 }
      local pool = replicas(3, mute, options)
      options.timeout_ms = 10

      pool:ask("k")

      assert.are.equal(250, kit():now())
    end)

    it("SG-6 is refused under another name", function()
      local text = raised_here(function() first_completed(3, mute, { timeout = 250 }) end)

      assert.matches("timeout", text)
    end)
  end)

  describe("a routee that raises", function()
    it("SG-7 leaves the answer to the others", function()
      local pool = replicas(3, function(actor, key)
        if actor.name == "routee-1" then error("no disk") end
        troupe.sleep(30)
        actor:reply("found " .. key)
      end, { timeout_ms = 100 })

      assert.are.equal("found k", (pool:ask("k")))
      assert.are.equal(30, kit():now())
    end)

    it("SG-7 makes no error: it restarts, and its slot times out", function()
      local starts = 0
      local pool = replicas(3, {
        pre_start = function() starts = starts + 1 end,
        receive = function(actor, message)
          if message == "fail" then error("no disk") end
          actor:reply(message)
        end,
      }, { timeout_ms = 100 })

      local _, err = pool:ask("fail")

      assert.is_truthy(err.message:find("none of 3 routees replied within 100ms", 1, true))
      assert.are.same({ "AskTimeoutError", "AskTimeoutError", "AskTimeoutError" },
        names(err.errors))
      assert.are.equal(100, kit():now())
      assert.are.equal(6, starts)
      assert.are.equal("again", (pool:ask("again")))
    end)

    it("SG-7 has answered when it raises after its reply", function()
      local pool = replicas(2, function(actor, message)
        actor:reply(message)
        error("no disk")
      end)

      assert.are.equal("k", (pool:ask("k")))
    end)
  end)

  describe("the end of the router", function()
    for _, entry in ipairs {
      { "stop()", function(pool) pool:stop() end },
      { "Kill", function(pool) pool:tell(troupe.Kill) end },
    } do
      it("SG-8 by " .. entry[1] .. " fails every open scatter at once", function()
        local pool = replicas(3, function(actor, message)
          troupe.sleep(1000)
          actor:reply(message)
        end)
        local caller, got = collector()
        for n = 1, 100 do pool:tell(n, caller) end
        kit():advance(10)
        assert.are.equal(100, open_scatters())

        entry[2](pool)
        kit():settle()

        assert.are.equal(100, #got)
        for _, answer in ipairs(got) do
          local err = answer.message
          assert.is_true(troupe.is_error(err, "AggregateError"), tostring(err))
          assert.is_truthy(err.message:find("stopped while the scatter was still open", 1, true))
          assert.are.same({}, err.errors)
        end
        assert.are.equal(0, open_scatters())
        kit():advance(10000)
        assert.are.equal(100, #got)
      end)
    end

    it("SG-8 by the system's end resumes an asker once", function()
      local outcomes = {}
      local pool = replicas(2, function() troupe.sleep(100000) end)
      kit():async(function()
        local _, err = pool:ask("k", 60000)
        outcomes[#outcomes + 1] = err.name
      end)
      kit():advance(10)

      kit().system:terminate()

      assert.are.equal(1, #outcomes)
      assert.are.equal(0, open_scatters())
    end)

    it("SG-8 does not wait for its routees to drain", function()
      local handled = 0
      local pool = replicas(2, function()
        troupe.sleep(1000)
        handled = handled + 1
      end)
      local caller = collector()
      for n = 1, 5 do pool:tell(n, caller) end
      kit():advance(10)

      pool:stop()
      kit():settle()

      assert.are.equal(1, kit().system:stats().actors)
      assert.are.equal(0, handled)
    end)

    it("SG-8 leaves a router that scatters again, after a restart", function()
      local pool = replicas(2, function(actor, message)
        if message == "stall" then troupe.sleep(1000) end
        actor:reply(message)
      end)
      local stalled = kit():async(function() return pool:ask("stall") end)
      kit():settle()

      pool:tell(troupe.Kill)

      assert.are.equal("again", (pool:ask("again")))
      local _, err = stalled:await()
      assert.is_true(troupe.is_error(err, "AggregateError"))
    end)
  end)

  describe("overlapping", function()
    it("SG-9 serves 500 callers at once, behind one stalled routee", function()
      local pool = replicas(3, function(actor, n)
        if actor.name == "routee-1" then return troupe.sleep(1000000) end
        local reply_to, routee_ref = actor.sender, actor.ref
        actor.system:schedule_once(100, function() reply_to:tell(n, routee_ref) end)
      end)
      local settled = {}
      for n = 1, 500 do
        kit():async(function()
          local value = pool:ask(n)
          settled[n] = { value, kit():now() }
        end)
      end

      kit():advance(99)
      assert.are.equal(500, open_scatters())
      assert.are.equal(0, #settled)
      kit():advance(1)

      for n = 1, 500 do assert.are.same({ n, 100 }, settled[n]) end
      assert.are.equal(0, open_scatters())
    end)

    it("SG-9 lets 500 time out in the same instant, each once", function()
      local pool = replicas(3, mute, { timeout_ms = 250 })
      local caller, got = collector()
      for n = 1, 500 do pool:tell(n, caller) end

      kit():advance(249)
      assert.are.equal(0, #got)
      kit():advance(1)

      assert.are.equal(500, #got)
      kit():advance(10000)
      assert.are.equal(500, #got)
    end)

    it("SG-9 takes other mail while a scatter is open", function()
      local seen = {}
      local pool = replicas(2, function(actor, message)
        if message == "all" then
          seen[#seen + 1] = actor.name
          return
        end
        local reply_to = actor.sender
        actor.system:schedule_once(100, function() reply_to:tell(message) end)
      end)
      local answer = kit():async(function() return pool:ask("k") end)
      kit():settle()

      pool:tell(Broadcast("all"))
      kit():settle()

      assert.are.same({ "routee-1", "routee-2" }, seen)
      assert.are.equal("k", (answer:await()))
    end)
  end)

  describe("once settled", function()
    local function nothing_left()
      local stats = kit().system:stats()
      assert.are.same({ asks = 0, scatters = 0, timers = 0 },
        { asks = stats.asks, scatters = stats.scatters, timers = stats.timers })
    end

    it("SG-13 leaves no timer behind, nor the caller's", function()
      local pool = replicas(3, function(actor, message)
        if actor.name == "routee-2" then actor:reply(message) end
      end)

      for n = 1, 1000 do kit():async(function() pool:ask(n, 60000) end) end
      kit():settle()

      nothing_left()
    end)

    it("SG-13 leaves no timer behind after a failure", function()
      local pool = replicas(3, function(actor) actor:fail("no disk") end)
      local caller, got = collector()

      pool:tell("k", caller)
      kit():settle()

      assert.are.equal(1, #got)
      nothing_left()
    end)

    it("SG-13 leaves no timer behind when the router has stopped", function()
      local pool = replicas(3, mute)
      local caller, got = collector()
      pool:tell("k", caller)
      kit():settle()

      pool:stop()
      kit():settle()

      assert.are.equal(1, #got)
      nothing_left()
    end)

    it("SG-13 leaves no timer behind when the caller has given up", function()
      local pool = replicas(3, mute, { timeout_ms = 4000 })
      kit():async(function() pool:ask("k", 50) end)

      kit():advance(4000)

      nothing_left()
    end)
  end)

  describe("a broadcast message", function()
    it("RTR-5 reaches every routee with the original sender, and scatters nothing", function()
      local seen = {}
      local pool = replicas(2, function(actor, message)
        seen[#seen + 1] = { actor.name, message, actor.sender }
      end)
      local caller, got = collector()

      pool:tell(Broadcast("announce"), caller)
      kit():settle()
      assert.are.equal(0, open_scatters())
      kit():advance(10000)

      assert.are.equal(2, #seen)
      for i = 1, 2 do
        assert.are.same({ "routee-" .. i, "announce" }, { seen[i][1], seen[i][2] })
        assert.are.equal(caller, seen[i][3])
      end
      assert.are.same({}, got)
    end)

    it("RTR-5 needs no reply target", function()
      local seen = {}
      local pool = replicas(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
      end)

      pool:tell(Broadcast("announce"))
      kit():settle()

      assert.are.same({ "routee-1:announce", "routee-2:announce" }, seen)
      assert.are.same({}, kit().logs)
    end)

    it("RTR-5 gives an ask the first answer, even a failure: nothing is gathered", function()
      local pool = replicas(2, function(actor, message)
        if actor.name == "routee-1" then return actor:fail("no disk") end
        troupe.sleep(10)
        actor:reply(message)
      end)

      local value, err = pool:ask(Broadcast("k"))

      assert.is_nil(value)
      assert.are.equal("no disk", err)
    end)
  end)

  describe("a routee that stops", function()
    it("SG-5 with the request in hand is out at once, and the others go on", function()
      local pool = replicas(2, function(actor, key)
        if actor.name == "routee-1" then error("no disk") end
        troupe.sleep(20)
        actor:reply("found " .. key)
      end, nil, { supervisor_strategy = troupe.stopping_strategy })

      assert.are.equal("found k", (pool:ask("k")))
      assert.are.equal(20, kit():now())
    end)

    it("SG-5 with the request in its mailbox is out at once", function()
      local pool = replicas(1, function()
        troupe.sleep(10)
        error("no disk")
      end, nil, { supervisor_strategy = troupe.stopping_strategy })
      local caller, got = collector()
      pool:tell("in hand", caller)
      pool:tell("queued", caller)

      kit():advance(10)

      assert.are.equal(2, #got)
      for i = 1, 2 do
        assert.are.same({ "ActorStoppedError" }, names(got[i].message.errors))
      end
    end)

    it("RTR-12 leaves the next scatter to the others", function()
      local asked = {}
      local pool = replicas(3, function(actor, message)
        asked[#asked + 1] = actor.name
        actor:reply(message)
      end)
      routee(2):stop()
      kit():settle()

      pool:ask("k")
      kit():settle()

      assert.are.same({ "routee-1", "routee-3" }, asked)
    end)

    it("RTR-12 stays under keep, as a failure of its own", function()
      local pool = replicas(2, function(actor)
        if actor.name == "routee-2" then actor:fail("no disk") end
      end, { on_routee_stop = "keep" })
      routee(1):stop()
      kit():settle()

      local _, err = pool:ask("k")

      assert.is_truthy(err.message:find("all 2 routees failed", 1, true))
      assert.are.equal("ActorStoppedError", err.errors[1].name)
      assert.are.equal("no disk", err.errors[2])
      assert.are.equal(0, kit():now())
    end)

    it("RTR-12 comes back under respawn", function()
      local pool = replicas(1, function(actor, message) actor:reply(message) end,
        { on_routee_stop = "respawn" })
      routee(1):stop()
      kit():settle()

      assert.are.equal("k", (pool:ask("k")))
    end)
  end)

  -- Two things that would each settle a scatter, in the same instant, in both orders. Timers that
  -- are due together fire in the order they were started (TMR-5), the scatter's own among them.
  describe("in one instant", function()
    local events = {
      ["reply"] = function(scene) scene.reply_to:tell("found", scene.routee) end,
      ["failure"] = function(scene) scene.reply_to:tell(troupe.error("Broken", "no disk")) end,
      ["routee's stop"] = function(scene) scene.wake:tell("raise") end,
      ["router's stop"] = function(scene) scene.pool:stop() end,
      ["router's restart"] = function(scene) scene.pool:tell(troupe.Kill) end,
    }

    -- Arranges for `first` and `second` to happen at 100 ms, to a scatter that `send(pool)` starts.
    local function stage(first, second, send)
      local has_deadline = first == "deadline" or second == "deadline"
      local scene = {}
      local gate = spawn(function(actor) scene.wake = actor.sender end)
      scene.pool = replicas(1, function(actor)
        scene.reply_to, scene.routee = actor.sender, actor.ref
        if gate:ask("wait", 5000) then error("no disk") end
      end, { timeout_ms = has_deadline and 100 or 1000 },
        { supervisor_strategy = troupe.stopping_strategy })
      kit():settle()

      local function start(event)
        if event == "deadline" then
          send(scene.pool)
          kit():settle()
        else
          kit().system:schedule_once(100, function() events[event](scene) end)
        end
      end
      if not has_deadline then start("deadline") end
      start(first)
      start(second)
    end

    local function settles_once(first, second)
      it("SG-12 a " .. first .. " and a " .. second .. " answer a sender once", function()
        local letters = dead_letters(kit())
        local caller, got = collector()
        stage(first, second, function(pool) pool:tell("k", caller) end)

        kit():advance(99)
        assert.are.equal(0, #got)
        kit():advance(1)
        assert.are.equal(1, #got)
        kit():advance(10000)

        assert.are.equal(1, #got)
        if first == "reply" and second ~= "deadline" then
          assert.are.equal("found", got[1].message)
        end
        assert.are.same({}, letters)
        assert.are.equal(0, open_scatters())
      end)

      it("SG-12 a " .. first .. " and a " .. second .. " resume an asker once", function()
        local resumed_at = {}
        stage(first, second, function(pool)
          kit():async(function()
            pool:ask("k", 60000)
            resumed_at[1] = kit():now()
            troupe.sleep(50)
            resumed_at[2] = kit():now()
          end)
        end)

        kit():advance(10000)

        assert.are.same({ 100, 150 }, resumed_at)
      end)
    end

    for _, race in ipairs {
      { "reply", "deadline" },
      { "failure", "deadline" },
      { "routee's stop", "deadline" },
      { "router's stop", "deadline" },
      { "router's restart", "deadline" },
      { "reply", "failure" },
      { "reply", "routee's stop" },
      { "failure", "routee's stop" },
      { "reply", "router's stop" },
      { "failure", "router's stop" },
      { "reply", "router's restart" },
      { "failure", "router's restart" },
      { "routee's stop", "router's stop" },
      { "routee's stop", "router's restart" },
    } do
      settles_once(race[1], race[2])
      settles_once(race[2], race[1])
    end
    settles_once("reply", "reply")
    settles_once("failure", "failure")

    -- A reply at 100 ms, to whoever asks then.
    local function reply_at_100(get_reply_ref)
      kit().system:schedule_once(100, function() get_reply_ref():tell("found") end)
    end

    for _, order in ipairs { "before", "after" } do
      it("SG-12 a reply just " .. order .. " the caller gives up resumes it once", function()
        local outcome, resumed_at, reply_to = nil, {}, nil
        local pool = replicas(1, function(actor) reply_to = actor.sender end)
        local function ask()
          kit():async(function()
            local value, err = pool:ask("k", 100)
            outcome = value or err.name
            resumed_at[1] = kit():now()
            troupe.sleep(50)
            resumed_at[2] = kit():now()
          end)
        end

        if order == "after" then ask() end
        reply_at_100(function() return reply_to end)
        if order == "before" then ask() end
        kit():advance(10000)

        assert.is_true(outcome == "found" or outcome == "AskTimeoutError")
        assert.are.same({ 100, 150 }, resumed_at)
      end)

      it("SG-12 a reply just " .. order .. " the caller's stop resumes it once or never", function()
        local closed, resumed, reply_to = 0, 0, nil
        local letters = dead_letters(kit())
        local pool = replicas(1, function(actor) reply_to = actor.sender end)
        local parent = spawn(function(actor, message)
          if message == "stop" then return actor:stop(actor:child("caller")) end
          actor:spawn(function()
            local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
            pool:ask("k", 60000)
            resumed = resumed + 1
          end, "caller"):tell("go")
        end)
        parent:tell("start")
        kit():settle()

        if order == "before" then reply_at_100(function() return reply_to end) end
        kit().system:schedule_once(100, function() parent:tell("stop") end)
        if order == "after" then reply_at_100(function() return reply_to end) end
        kit():advance(10000)

        assert.are.equal(1, closed)
        assert.is_true(resumed <= 1)
        assert.are.same({}, letters)
        assert.are.equal(0, open_scatters())
      end)
    end
  end)
end)
