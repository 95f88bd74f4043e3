local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local pools = require "spec.support.pools"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local recorder, count_by_routee, sorted = pools.recorder, pools.count_by_routee, pools.sorted
local routee, stop_routee = pools.routee, pools.stop_routee
local dead_letters, tell_each = pools.dead_letters, pools.tell_each

local function echo(actor, message) actor:reply(message) end

local function first_routee(routees) return routees[1] end

local function custom(size, behavior, ...)
  return Router.custom(size, behavior, first_routee, ...)
end

local function consistent_hashing(size, behavior, behavior_options, options)
  local with_key = { hash_key = tostring }
  for name, value in pairs(options or {}) do with_key[name] = value end
  return Router.consistent_hashing(size, behavior, with_key, behavior_options)
end

-- The pools that pass a message on.
local passing = {
  { name = "round_robin", make = Router.round_robin },
  { name = "random", make = Router.random },
  { name = "broadcast", make = Router.broadcast },
  { name = "smallest_mailbox", make = Router.smallest_mailbox },
  { name = "custom", make = custom },
  { name = "consistent_hashing", make = consistent_hashing },
}

local factories = table.move(passing, 1, #passing, 2,
  { { name = "scatter_gather_first_completed", make = Router.scatter_gather_first_completed } })

describe("routers", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  describe("factories", function()
    for _, factory in ipairs(factories) do
      local name, make = factory.name, factory.make

      it("RTR-1 " .. name .. " gives a behavior to spawn", function()
        local pool = spawn(make(2, echo), "workers")

        assert.are.equal("a", (pool:ask("a")))
      end)

      it("RTR-1 " .. name .. " gives what says which router it is", function()
        assert.are.equal("Router." .. name .. "(2)", tostring(make(2, echo)))
      end)

      it("RTR-1 " .. name .. " takes a table of hooks for its routees", function()
        local pool = spawn(make(2, {
          pre_start = function(actor) actor.greeting = "hello, " end,
          receive = function(actor, message) actor:reply(actor.greeting .. message) end,
        }), "workers")

        assert.are.equal("hello, a", (pool:ask("a")))
      end)

      it("RTR-1 " .. name .. " refuses a routee that is no behavior", function()
        local text = raised_here(function() make(2, 42) end)

        assert.matches("Router." .. name .. ": .*behavior.*got 42", text)
      end)

      it("RTR-2 " .. name .. " refuses a size below one, or no integer", function()
        local sizes = { 0, -1, 1.5, 0 / 0, 1 / 0, -1 / 0, "3", true, {}, math.mininteger }
        local before = kit().system:stats().actors

        for _, size in ipairs(sizes) do
          local text = raised_here(function() make(size, echo) end)
          assert.matches("Router." .. name .. ": size must be an integer", text, 1, true)
        end
        raised_here(function() make(nil, echo) end)
        assert.are.equal(before, kit().system:stats().actors)
      end)

      it("RTR-2 " .. name .. " may be a routee, a hundred deep", function()
        local nested = echo
        for _ = 1, 100 do nested = make(1, nested) end
        local ref = spawn(nested, "outer")

        local text = raised_here(function() make(1, nested) end)

        assert.matches("Router." .. name .. ": routers must not be nested more than 100 deep", text,
          1, true)
        assert.are.equal("deep", (ref:ask("deep")))
      end)

      it("RTR-2 " .. name .. " takes a float that is an integer", function()
        local seen = {}
        local pool = spawn(make(3.0, recorder(seen)), "workers")

        pool:tell(Broadcast("a"))
        kit():settle()

        assert.are.same({ "routee-1:a", "routee-2:a", "routee-3:a" }, seen)
      end)

      it("RTR-2 " .. name .. " works with a single routee", function()
        local pool = spawn(make(1, echo), "workers")

        assert.are.same({ "a", "b" }, { (pool:ask("a")), (pool:ask("b")) })
      end)
    end

    it("RTR-2 refuses a size that no pool can have, rather than cut it short", function()
      for _, size in ipairs { 2 ^ 32 + 1, 1 << 32, 2 ^ 53, math.maxinteger } do
        assert.matches("size must be", raised_here(function() Router.round_robin(size, echo) end))
      end
    end)

    it("RTR-2 says what size must be, and what was given", function()
      local text = raised_here(function() Router.round_robin(0, echo) end)

      assert.matches("Router.round_robin: size must be an integer from 1 to 1000000 (got 0)",
        text, 1, true)
    end)

    it("RTR-10 custom refuses a strategy that is no function", function()
      local text = raised_here(function() Router.custom(2, echo, "first") end)

      assert.matches("strategy must be a function", text)
    end)

    it("RTR-12 refuses an unknown on_routee_stop, and an unknown pool option", function()
      local make = Router.round_robin

      local text = raised_here(function() make(2, echo, nil, { on_routee_stop = "ignore" }) end)
      assert.matches("on_routee_stop must be .*ignore", text)

      text = raised_here(function() make(2, echo, nil, { on_stop = "keep" }) end)
      assert.matches("on_stop", text)
    end)

    for name, case in pairs {
      ["round_robin that it gives its routees"] = {
        function() Router.round_robin(2, echo, { on_routee_stop = "keep" }) end,
        "Router.round_robin: on_routee_stop goes into pool_options, the argument after "
          .. "routee_options",
      },
      ["custom that it gives its routees"] = {
        function() Router.custom(2, echo, first_routee, { resizer = {} }) end,
        "Router.custom: resizer goes into pool_options, the argument after routee_options",
      },
      ["hedged that it gives its routees"] = {
        function() Router.hedged(2, echo, nil, { delay_ms = 1 }) end,
        "Router.hedged: delay_ms goes into options, the argument before routee_options",
      },
      ["routees that it gives round_robin"] = {
        function() Router.round_robin(2, echo, nil, { throughput = 1 }) end,
        "Router.round_robin: throughput goes into routee_options, the argument before pool_options",
      },
      ["routees that it gives scatter_gather"] = {
        function() Router.scatter_gather(2, echo, { mailbox = { capacity = 1 } }) end,
        "Router.scatter_gather: mailbox goes into routee_options, the argument after options",
      },
      ["routees that it gives consistent_hashing"] = {
        function() Router.consistent_hashing(2, echo, { stash_capacity = 1 }) end,
        "Router.consistent_hashing: stash_capacity goes into routee_options, the argument after "
          .. "options",
      },
    } do
      it("RTR-12 says where an option belongs, which is of " .. name, function()
        assert.matches(case[2], raised_here(case[1]), 1, true)
      end)
    end
  end)

  describe("routees", function()
    it("RTR-3 are children routee-1 to routee-N, started in order", function()
      local started = {}
      spawn(Router.round_robin(11, {
        pre_start = function(actor) started[#started + 1] = tostring(actor.path) end,
        receive = echo,
      }), "workers")

      kit():settle()

      local expected = {}
      for i = 1, 11 do expected[i] = "troupe://demo/user/workers/routee-" .. i end
      assert.are.same(expected, started)
    end)

    it("RTR-3 have the router as their parent", function()
      local pool = spawn(Router.round_robin(1, function(actor) actor:reply(actor.parent) end))

      assert.are.equal(pool, (pool:ask("parent?")))
    end)

    it("RTR-3 get the mail that was told before the router had started", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, recorder(seen)), "workers")

      pool:tell("a")
      pool:tell("b")
      kit():settle()

      assert.are.same({ "routee-1:a", "routee-2:b" }, seen)
    end)

    it("RTR-3 are spawned anew when the router restarts", function()
      local starts = 0
      local pool = spawn(Router.round_robin(2, {
        pre_start = function() starts = starts + 1 end,
        receive = function(actor, message) actor:reply(actor.name .. ":" .. message) end,
      }))
      kit():settle()

      pool:tell(troupe.Kill)
      kit():settle()

      assert.are.equal(4, starts)
      assert.are.equal("routee-1:a", (pool:ask("a")))
    end)

    it("RTR-3 can be routers themselves", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, Router.round_robin(2, function(actor, message)
        seen[#seen + 1] = actor.parent.name .. "/" .. actor.name .. ":" .. message
      end)), "workers")

      tell_each(kit(), pool, "a", "b", "c")

      assert.are.same({
        "routee-1/routee-1:a", "routee-2/routee-1:b", "routee-1/routee-2:c",
      }, seen)
    end)

    for _, factory in ipairs(passing) do
      it("RTR-4 " .. factory.name .. " keeps the sender", function()
        local senders = {}
        local pool = spawn(factory.make(1, function(actor)
          senders[#senders + 1] = actor.sender or "nobody"
        end))
        local client = spawn(function() end, "client")

        pool:tell("a", client)
        pool:tell("b")
        kit():settle()

        assert.are.equal(2, #senders)
        assert.are.equal(client, senders[1])
        assert.are.equal("nobody", senders[2])
      end)

      it("RTR-4 " .. factory.name .. " lets a routee answer the caller directly", function()
        local answers = {}
        local pool = spawn(factory.make(1, echo), "workers")
        local client = spawn(function(actor, message)
          answers[#answers + 1] = message .. " from " .. tostring(actor.sender.path)
        end)

        pool:tell("a", client)
        kit():settle()

        assert.are.same({ "a from troupe://demo/user/workers/routee-1" }, answers)
      end)

      it("RTR-4 " .. factory.name .. " gives an ask the routee that answered", function()
        local pool = spawn(factory.make(1, echo), "workers")

        local value, err, from = pool:ask("a")

        assert.are.same({ "a", nil }, { value, err })
        assert.are.equal(routee(kit(), 1), from)
      end)
    end

    it("RTR-14 fail one by one: a failing routee starts afresh, its siblings do not", function()
      local pool = spawn(Router.round_robin(3, {
        pre_start = function(actor) actor.count = 0 end,
        receive = function(actor, message)
          if message == "fail" then error("no disk") end
          actor.count = actor.count + 1
          actor:reply(actor.name .. ":" .. actor.count)
        end,
      }), "workers")
      tell_each(kit(), pool, "a", "b", "c", "d", "fail")

      local counts = { (pool:ask("e")), (pool:ask("f")), (pool:ask("g")) }

      assert.are.same({ "routee-3:2", "routee-1:3", "routee-2:1" }, counts)
    end)

    it("RTR-14 keep their place in the queue over a restart", function()
      local handled = {}
      local pool = spawn(Router.round_robin(1, function(_, n)
        if n == 2 then error("no disk") end
        handled[#handled + 1] = n
      end), "workers")

      for n = 1, 5 do pool:tell(n) end
      kit():settle()
      for n = 6, 7 do pool:tell(n) end
      kit():settle()

      assert.are.same({ 1, 3, 4, 5, 6, 7 }, handled)
    end)

    it("RTR-14 do not freeze when siblings fail in the same turn, over and over", function()
      local handled = 0
      local pool = spawn(Router.round_robin(3, function(_, n)
        if n % 4 < 2 then error("no disk") end
        handled = handled + 1
      end, { supervisor_strategy = troupe.one_for_one { max_restarts = -1 } }), "workers")

      for n = 1, 600 do
        pool:tell(n)
        if n % 50 == 0 then kit():settle() end
      end

      assert.are.equal(300, handled)
      assert.are.equal(0, kit().system:stats().queued)
    end)
  end)

  describe("a broadcast message", function()
    for _, factory in ipairs(factories) do
      it("RTR-5 reaches every routee of " .. factory.name .. ", unwrapped", function()
        local seen = {}
        local pool = spawn(factory.make(3, function(actor, message)
          seen[#seen + 1] = { actor.name, message }
        end), "workers")
        local payload = { "announce" }

        pool:tell(Broadcast(payload))
        kit():settle()

        for i = 1, 3 do
          assert.are.equal("routee-" .. i, seen[i][1])
          assert.are.equal(payload, seen[i][2])
        end
        assert.are.equal(3, #seen)
      end)

      it("RTR-5 keeps the sender through " .. factory.name, function()
        local senders = {}
        local pool = spawn(factory.make(2, function(actor)
          senders[#senders + 1] = actor.sender
        end))
        local client = spawn(function() end)

        pool:tell(Broadcast("announce"), client)
        kit():settle()

        assert.are.equal(2, #senders)
        assert.are.equal(client, senders[1])
        assert.are.equal(client, senders[2])
      end)

      it("RTR-5 gives an ask of " .. factory.name .. " the first answer", function()
        local pool = spawn(factory.make(3, function(actor, message)
          troupe.sleep(actor.name == "routee-2" and 10 or 20)
          actor:reply(actor.name .. ":" .. message)
        end))

        local answer = pool:ask(Broadcast("who?"))

        assert.are.equal("routee-2:who?", answer)
        assert.are.equal(10, kit():now())
      end)
    end

    it("RTR-5 uses up no turn of round_robin", function()
      local seen = {}
      local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", Broadcast("all"), "b")

      assert.are.same({
        "routee-1:a", "routee-1:all", "routee-2:all", "routee-3:all", "routee-2:b",
      }, seen)
    end)

    it("RTR-5 uses up no turn of smallest_mailbox", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", Broadcast("all"), "b")

      assert.are.same({
        "routee-1:a", "routee-1:all", "routee-2:all", "routee-3:all", "routee-2:b",
      }, seen)
    end)

    it("RTR-5 uses up no turn of random", function()
      local function picks(...)
        local seen = {}
        local other = testkit.system("demo", { seed = 11 })
        local pool = other.system:spawn(Router.random(5, recorder(seen)), "workers")
        tell_each(other, pool, ...)
        other.system:terminate()
        return seen
      end

      local plain = picks("a", "b", "c", "d")
      local mixed = picks("a", Broadcast("all"), "b", Broadcast("all"), "c", "d")

      local routed = {}
      for _, pick in ipairs(mixed) do
        if not pick:find(":all", 1, true) then routed[#routed + 1] = pick end
      end
      assert.are.same(plain, routed)
    end)

    it("RTR-5 is not shown to a custom strategy", function()
      local indexes = {}
      local pool = spawn(Router.custom(2, echo, function(routees, state)
        indexes[#indexes + 1] = state.message_index
        return routees[1]
      end))

      tell_each(kit(), pool, "a", Broadcast("all"), "b")

      assert.are.same({ 0, 1 }, indexes)
    end)

    it("RTR-5 loses one layer for each router it passes", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, Router.round_robin(2, function(actor, message)
        seen[#seen + 1] = actor.parent.name .. "/" .. actor.name .. ":" .. tostring(message)
      end)))

      pool:tell(Broadcast("one"))
      kit():settle()
      assert.are.same({ "routee-1/routee-1:one", "routee-2/routee-1:one" }, sorted(seen))

      seen[1], seen[2] = nil, nil
      pool:tell(Broadcast(Broadcast("two")))
      kit():settle()
      assert.are.same({
        "routee-1/routee-1:two", "routee-1/routee-2:two",
        "routee-2/routee-1:two", "routee-2/routee-2:two",
      }, sorted(seen))
    end)

    it("RTR-5 reaches every routee when it comes from a timer, or is passed on", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, recorder(seen)), "workers")
      local forwarder = spawn(function(actor, message) pool:tell(message, actor.sender) end)

      kit().system:schedule_once(10, function() pool:tell(Broadcast("timer")) end)
      kit():advance(10)
      forwarder:tell(Broadcast("passed on"))
      kit():settle()

      assert.are.same({
        "routee-1:timer", "routee-2:timer", "routee-1:passed on", "routee-2:passed on",
      }, seen)
    end)

    it("RTR-5 is a message of its own kind at an actor that is no router", function()
      local seen = {}
      local actor = spawn(function(_, message)
        seen[#seen + 1] = { troupe.is(message, Broadcast), message.payload }
      end)

      tell_each(kit(), actor, Broadcast("news"), { payload = "no news" })

      assert.are.same({ { true, "news" }, { false, "no news" } }, seen)
    end)

    it("RTR-5 may hold nil or false", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, recorder(seen)), "workers")

      pool:tell(Broadcast(nil))
      pool:tell(Broadcast(false))
      kit():settle()

      assert.are.same({ "routee-1:false", "routee-1:nil", "routee-2:false", "routee-2:nil" },
        sorted(seen))
    end)

    it("RTR-5 may hold a poison pill: the routees drain and stop, the router lives", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, recorder(seen)), "workers")

      pool:tell("a")
      pool:tell("b")
      pool:tell(Broadcast(troupe.PoisonPill))
      kit():settle()

      assert.are.same({ "routee-1:a", "routee-2:b" }, seen)
      local _, err = pool:ask("c")
      assert.is_true(troupe.is_error(err, "NoRouteesError"))
    end)
  end)

  describe("a router without routees", function()
    for _, factory in ipairs(passing) do
      local function empty_pool()
        local pool = spawn(factory.make(2, echo), "workers")
        stop_routee(kit(), 1)
        stop_routee(kit(), 2)
        return pool
      end

      it("RTR-19 (" .. factory.name .. ") dead-letters a tell", function()
        local pool = empty_pool()
        local letters = dead_letters(kit())

        pool:tell("a")
        pool:tell(Broadcast("all"))
        kit():settle()

        assert.are.equal(2, #letters)
        for _, letter in ipairs(letters) do
          assert.are.equal("no-routees", letter.reason)
          assert.are.equal("troupe://demo/user/workers", tostring(letter.recipient))
        end
        assert.are.equal("a", letters[1].message)
      end)

      it("RTR-19 (" .. factory.name .. ") fails an ask at once", function()
        local pool = empty_pool()
        local letters = dead_letters(kit())
        local before = kit():now()

        local value, err = pool:ask("a", 60000)

        assert.is_nil(value)
        assert.are.same({}, letters)
        assert.is_true(troupe.is_error(err, "NoRouteesError"), tostring(err))
        assert.are.equal(before, kit():now())
      end)
    end

    it("RTR-19 does not call a custom strategy", function()
      local calls = 0
      local pool = spawn(Router.custom(1, echo, function(routees)
        calls = calls + 1
        return routees[1]
      end), "workers")
      stop_routee(kit(), 1)

      tell_each(kit(), pool, "a")

      assert.are.equal(0, calls)
    end)
  end)

  describe("a routee that stops", function()
    for n = 1, 3 do
      it("RTR-12 leaves the pool (routee-" .. n .. " of 3)", function()
        local seen = {}
        local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")
        local letters = dead_letters(kit())
        stop_routee(kit(), n)

        tell_each(kit(), pool, "a", "b", "c", "d")

        local expected = { ["routee-1"] = 2, ["routee-2"] = 2, ["routee-3"] = 2 }
        expected["routee-" .. n] = nil
        assert.are.same(expected, count_by_routee(seen))
        assert.are.same({}, letters)
      end)
    end

    for _, case in ipairs {
      { stopped = 1, then_to = "routee-3:c routee-2:d" },
      { stopped = 2, then_to = "routee-3:c routee-1:d" },
      { stopped = 3, then_to = "routee-1:c routee-2:d" },
    } do
      it("RTR-12 costs nobody a turn (routee-" .. case.stopped .. " of 3)", function()
        local seen = {}
        local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")
        tell_each(kit(), pool, "a", "b")

        stop_routee(kit(), case.stopped)
        tell_each(kit(), pool, "c", "d")

        assert.are.equal(case.then_to, table.concat(seen, " ", 3))
      end)
    end

    it("RTR-12 leaves the pool also when supervision stopped it", function()
      local pool = spawn(Router.round_robin(2, function(actor, message)
        if message == "fail" then error("no disk") end
        actor:reply(actor.name)
      end, { supervisor_strategy = troupe.stopping_strategy }), "workers")

      tell_each(kit(), pool, "fail")

      assert.are.same({ "routee-2", "routee-2" }, { (pool:ask("a")), (pool:ask("b")) })
    end)

    it("RTR-12 leaves its share to the dead letters under keep, until the router restarts",
      function()
        local seen = {}
        local pool = spawn(Router.round_robin(3, recorder(seen), nil,
          { on_routee_stop = "keep" }), "workers")
        local letters = dead_letters(kit())
        stop_routee(kit(), 2)

        tell_each(kit(), pool, 1, 2, 3, 4, 5, 6)

        assert.are.same({ "routee-1:1", "routee-3:3", "routee-1:4", "routee-3:6" }, seen)
        assert.are.same({ 2, 5 }, { letters[1].message, letters[2].message })
        assert.are.equal("stopped", letters[1].reason)
        assert.are.equal("troupe://demo/user/workers/routee-2", tostring(letters[1].recipient))

        pool:tell(troupe.Kill)
        kit():settle()
        tell_each(kit(), pool, 7, 8, 9)
        assert.are.same({ "routee-1:7", "routee-2:8", "routee-3:9" },
          table.move(seen, 5, 7, 1, {}))
        assert.are.equal(2, #letters)
      end)

    it("RTR-12 fails an ask at once under keep", function()
      local pool = spawn(Router.round_robin(2, echo, nil, { on_routee_stop = "keep" }), "workers")
      stop_routee(kit(), 1)
      local before = kit():now()

      local _, err = pool:ask("a")

      assert.is_true(troupe.is_error(err, "ActorStoppedError"), tostring(err))
      assert.are.equal(before, kit():now())
      assert.are.equal("b", (pool:ask("b")))
    end)

    it("RTR-12 comes back anew under its name under respawn", function()
      local starts = {}
      local pool = spawn(Router.round_robin(3, {
        pre_start = function(actor) starts[#starts + 1] = actor.name end,
        receive = function(actor, message) actor:reply(actor.name .. ":" .. message) end,
      }, nil, { on_routee_stop = "respawn" }), "workers")
      kit():settle()
      local old = routee(kit(), 2)
      local letters = dead_letters(kit())

      old:stop()
      kit():settle()

      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-2" }, starts)
      assert.are_not.equal(old, routee(kit(), 2))
      local answers = { (pool:ask("a")), (pool:ask("a")), (pool:ask("a")) }
      assert.are.same({ "routee-1:a", "routee-2:a", "routee-3:a" }, sorted(answers))
      assert.are.same({}, letters)
    end)

    for n = 1, 3 do
      it("RTR-12 takes its turns again under respawn (routee-" .. n .. " of 3)", function()
        local seen = {}
        local pool = spawn(Router.round_robin(3, recorder(seen), nil,
          { on_routee_stop = "respawn" }), "workers")
        tell_each(kit(), pool, "a", "b")

        stop_routee(kit(), n)
        tell_each(kit(), pool, "c", "d", "e")

        assert.are.same({ ["routee-1"] = 1, ["routee-2"] = 1, ["routee-3"] = 1 },
          count_by_routee(table.move(seen, 3, 5, 1, {})))
      end)
    end

    it("RTR-12 takes nobody's turn when it comes back under respawn", function()
      local got = {}
      local pool = spawn(Router.round_robin(3, function(actor)
        got[#got + 1] = actor.name
        actor:stop()
      end, nil, { on_routee_stop = "respawn" }), "workers")

      for i = 1, 6 do
        pool:tell(i)
        kit():settle()
      end

      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-1", "routee-2", "routee-3" },
        got)
    end)

    it("RTR-12 comes back again and again under respawn", function()
      local starts = 0
      local pool = spawn(Router.round_robin(1, {
        pre_start = function() starts = starts + 1 end,
        receive = echo,
      }, nil, { on_routee_stop = "respawn" }), "workers")
      kit():settle()

      for _ = 1, 3 do
        stop_routee(kit(), 1)
        kit():advance(60000)
      end

      assert.are.equal(4, starts)
      assert.are.equal("a", (pool:ask("a")))
    end)

    it("RTR-12 does not come back when its router stops", function()
      local starts = 0
      local pool = spawn(Router.round_robin(2, {
        pre_start = function() starts = starts + 1 end,
        receive = function() end,
      }, nil, { on_routee_stop = "respawn" }))
      kit():settle()

      pool:stop()
      kit():settle()

      assert.are.equal(2, starts)
      assert.are.equal(0, kit().system:stats().actors)
    end)
  end)

  describe("stopping a router", function()
    local function slow_pool(handled, stopped)
      return spawn(Router.round_robin(2, {
        receive = function(_, message)
          troupe.sleep(10)
          handled[#handled + 1] = message
        end,
        post_stop = function(actor) stopped[#stopped + 1] = actor.name end,
      }), "workers")
    end

    for _, entry in ipairs {
      { "stop()", function(pool) pool:stop() end },
      { "PoisonPill", function(pool) pool:tell(troupe.PoisonPill) end },
    } do
      local how, stop = entry[1], entry[2]

      it("RTR-13 by " .. how .. " drains the routees, then stops them", function()
        local handled, stopped = {}, {}
        local pool = slow_pool(handled, stopped)
        local letters = dead_letters(kit())

        for n = 1, 6 do pool:tell(n) end
        stop(pool)
        pool:tell("too late")
        kit():advance(30)

        assert.are.same({ 1, 2, 3, 4, 5, 6 }, sorted(handled))
        assert.are.same({ "routee-1", "routee-2" }, sorted(stopped))
        assert.are.equal(1, #letters)
        assert.are.equal("too late", letters[1].message)
        assert.are.equal(0, kit().system:stats().actors)
      end)
    end

    it("RTR-13 announces the router's end after its routees'", function()
      local stopped = {}
      kit().system.events:subscribe(function(event)
        stopped[#stopped + 1] = event.ref.name
      end, "actor_stopped")
      local pool = spawn(Router.round_robin(2, echo), "workers")

      pool:stop()
      kit():settle()

      assert.are.same({ "routee-1", "routee-2", "workers" }, stopped)
    end)

    it("RTR-13 takes down a pool of pools", function()
      local handled = {}
      local pool = spawn(Router.round_robin(2, Router.round_robin(2, function(_, n)
        troupe.sleep(10)
        handled[#handled + 1] = n
      end)))

      for n = 1, 8 do pool:tell(n) end
      pool:stop()
      kit():advance(20)

      assert.are.same({ 1, 2, 3, 4, 5, 6, 7, 8 }, sorted(handled))
      assert.are.equal(0, kit().system:stats().actors)
    end)
  end)
end)

-- Random histories, compared with models that fit in a few lines.
describe("an ask through a router", function()
  local kit = new_kit.each(before_each, after_each)

  it("ASK-7 names the routee that refused an ask, and not the pool that lives", function()
    local kept = kit().system:spawn(troupe.Router.round_robin(1, function(actor)
      actor:reply("served")
    end, nil, { on_routee_stop = "keep" }), "kept")
    kit():settle()
    kit().system:actor_selection("/user/kept/routee-1"):resolve_one():stop()
    kit():settle()

    local _, err = kept:ask("anybody?")

    assert.are.equal("ActorStoppedError", err.name)
    assert.are.equal("troupe://demo/user/kept/routee-1", err.path)
  end)

  it("RTR-2 names the bound of a size that is beyond it", function()
    assert.error_matches(function() troupe.Router.random(1000001, function() end) end,
      "Router%.random: size must be an integer from 1 to 1000000 %(got 1000001%)")
  end)
end)
