local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function echo(actor, message) actor:reply(message) end

local function first_routee(routees) return routees[1] end

local function custom(size, routee, ...)
  return Router.custom(size, routee, first_routee, ...)
end

-- The pools that pass a message on.
local pools = {
  { name = "round_robin", make = Router.round_robin },
  { name = "random", make = Router.random },
  { name = "broadcast", make = Router.broadcast },
  { name = "smallest_mailbox", make = Router.smallest_mailbox },
  { name = "custom", make = custom },
}

local factories = table.move(pools, 1, #pools, 2,
  { { name = "scatter_gather_first_completed", make = Router.scatter_gather_first_completed } })

-- A routee that notes "name:message" in `seen`.
local function recorder(seen)
  return function(actor, message) seen[#seen + 1] = actor.name .. ":" .. tostring(message) end
end

local function count_by_routee(seen)
  local counts = {}
  for _, entry in ipairs(seen) do
    local name = entry:match("^[^:]+")
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

local function dead_letters(kit)
  local letters = {}
  kit.system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
  return letters
end

local function routee(kit, n)
  return (kit.system:actor_selection("/user/workers/routee-" .. n):resolve_one())
end

local function stop_routee(kit, n)
  routee(kit, n):stop()
  kit:settle()
end

-- Tells the messages one by one, each when the one before has been dealt with.
local function tell_each(kit, pool, ...)
  for _, message in ipairs { ... } do
    pool:tell(message)
    kit:settle()
  end
end

local function sorted(list)
  table.sort(list)
  return list
end

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

      assert.matches("Router.round_robin: size must be an integer of at least 1 (got 0)",
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

    for _, factory in ipairs(pools) do
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

  describe("round_robin", function()
    it("RTR-6 goes from the first routee to the last and again", function()
      local seen = {}
      local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", "b", "c", "d", "e")

      assert.are.same({
        "routee-1:a", "routee-2:b", "routee-3:c", "routee-1:d", "routee-2:e",
      }, seen)
    end)

    it("RTR-6 goes on in one turn as over many", function()
      local seen = {}
      local pool = spawn(Router.round_robin(4, recorder(seen)), "workers")

      for n = 1, 1000 do pool:tell(n) end
      kit():settle()

      assert.are.same({
        ["routee-1"] = 250, ["routee-2"] = 250, ["routee-3"] = 250, ["routee-4"] = 250,
      }, count_by_routee(seen))
    end)

    it("RTR-6 begins again with the router's next incarnation", function()
      local seen = {}
      local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", "b")
      pool:tell(troupe.Kill)
      kit():settle()
      tell_each(kit(), pool, "c", "d")

      assert.are.same({ "routee-1:a", "routee-2:b", "routee-1:c", "routee-2:d" }, seen)
    end)

    it("RTR-6 does not care how busy a routee is", function()
      local seen = {}
      local pool = spawn(Router.round_robin(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
        if message == "stall" then troupe.sleep(100) end
      end))

      tell_each(kit(), pool, "stall", "a", "b", "c")
      kit():advance(100)

      assert.are.same({ "routee-1:stall", "routee-2:a", "routee-2:c", "routee-1:b" }, seen)
    end)
  end)

  describe("broadcast", function()
    it("RTR-8 tells everyone, in order", function()
      local seen = {}
      local pool = spawn(Router.broadcast(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", "b")

      assert.are.same({
        "routee-1:a", "routee-2:a", "routee-3:a", "routee-1:b", "routee-2:b", "routee-3:b",
      }, seen)
    end)

    it("RTR-8 brings a real sender an answer from each", function()
      local answers = {}
      local pool = spawn(Router.broadcast(4, function(actor) actor:reply(actor.name) end))
      local client = spawn(function(_, answer) answers[#answers + 1] = answer end)

      pool:tell("who?", client)
      kit():settle()

      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-4" }, answers)
    end)

    it("RTR-8 brings a ref in the message an answer from each", function()
      local answers = {}
      local pool = spawn(Router.broadcast(4, function(actor, message)
        message.reply_to:tell(actor.name)
      end))
      local client = spawn(function(_, answer) answers[#answers + 1] = answer end)

      pool:tell { reply_to = client }
      kit():settle()

      assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-4" }, answers)
    end)

    it("RTR-8 gives an ask the first answer, whether it is a success or not", function()
      local pool = spawn(Router.broadcast(3, function(actor)
        if actor.name == "routee-2" then actor:fail("no disk") end
        troupe.sleep(10)
        actor:reply(actor.name)
      end))
      local letters = dead_letters(kit())

      local value, err, from = pool:ask("who?")
      kit():advance(10)

      assert.are.same({ nil, "no disk", "routee-2" }, { value, err, from.name })
      assert.are.same({}, letters)
    end)
  end)

  describe("smallest_mailbox", function()
    it("RTR-9 rotates ties: an idle pool of three gets 1, 2, 3, 1", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, recorder(seen)), "workers")

      tell_each(kit(), pool, "a", "b", "c", "d")

      assert.are.same({ "routee-1:a", "routee-2:b", "routee-3:c", "routee-1:d" }, seen)
    end)

    it("RTR-9 spreads what comes in one turn", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(4, recorder(seen)), "workers")

      for n = 1, 8 do pool:tell(n) end
      kit():settle()

      assert.are.same({
        "routee-1:1", "routee-1:5", "routee-2:2", "routee-2:6",
        "routee-3:3", "routee-3:7", "routee-4:4", "routee-4:8",
      }, sorted(seen))
    end)

    it("RTR-9 does not take a stalled routee for an idle one", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
        if message == "stall" then troupe.sleep(100) end
      end))

      tell_each(kit(), pool, "stall", "a", "b", "c")

      assert.are.same({ "routee-1:stall", "routee-2:a", "routee-2:b", "routee-2:c" }, seen)
      kit():advance(100)
    end)

    it("RTR-9 rotates ties among the idle when another is stalled", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, function(actor, message)
        if message == "stall" then return troupe.sleep(100) end
        seen[#seen + 1] = actor.name .. ":" .. message
      end))

      tell_each(kit(), pool, "stall", "a", "b", "c", "d", "e", "f")

      assert.are.same({ ["routee-2"] = 3, ["routee-3"] = 3 }, count_by_routee(seen))
      kit():advance(100)
    end)

    it("RTR-9 counts the message in hand as one, like each that is queued", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
        if message == "stall" then troupe.sleep(100) end
      end), "workers")
      tell_each(kit(), pool, "stall")

      pool:tell("a")
      routee(kit(), 2):tell("own 1")
      routee(kit(), 2):tell("own 2")
      kit():advance(100)

      assert.are.same({
        "routee-1:stall", "routee-2:own 1", "routee-2:own 2", "routee-1:a",
      }, seen)
    end)

    it("RTR-9 never picks a routee that is stopping", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, {
        receive = function(actor, message) seen[#seen + 1] = actor.name .. ":" .. message end,
        post_stop = function() troupe.sleep(200) end,
      }), "workers")
      local letters = dead_letters(kit())
      routee(kit(), 2):stop()
      kit():settle()

      for n = 1, 30 do pool:tell(n) end
      kit():settle()

      assert.are.same({ ["routee-1"] = 15, ["routee-3"] = 15 }, count_by_routee(seen))
      assert.are.same({}, letters)
      kit():advance(200)
    end)

    it("RTR-9 never picks a stopped routee that is kept, while another lives", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, recorder(seen), nil,
        { on_routee_stop = "keep" }), "workers")
      local letters = dead_letters(kit())
      stop_routee(kit(), 2)

      tell_each(kit(), pool, "a", "b", "c", "d", "e", "f")

      assert.are.same({ ["routee-1"] = 3, ["routee-3"] = 3 }, count_by_routee(seen))
      assert.are.same({}, letters)
    end)

    it("RTR-9 spreads evenly over a full bounded pool, whose mailboxes decide", function()
      local handled = {}
      local pool = spawn(Router.smallest_mailbox(3, function(_, n)
        handled[#handled + 1] = n
        troupe.sleep(100)
      end, { mailbox = { capacity = 2, overflow = "drop-head" } }), "workers")
      for n = 1, 3 do pool:tell(n) end
      kit():settle()

      for n = 4, 15 do pool:tell(n) end
      kit():advance(1000)

      assert.are.same({ 1, 2, 3, 10, 11, 12, 13, 14, 15 }, sorted(handled))
    end)
  end)

  describe("custom", function()
    it("RTR-10 gives the strategy the routees, the index from 0, and the message", function()
      local calls = {}
      local pool = spawn(Router.custom(2, echo, function(routees, state)
        calls[#calls + 1] = { #routees, routees[2].name, state.message_index, state.message }
        return routees[1]
      end))
      local message = { payload = "b" }

      tell_each(kit(), pool, "a", message)

      assert.are.same({ 2, "routee-2", 0, "a" }, calls[1])
      assert.are.same({ 2, "routee-2", 1 }, table.move(calls[2], 1, 3, 1, {}))
      assert.are.equal(message, calls[2][4])
    end)

    it("RTR-10 counts the index from 0 with the router's next incarnation", function()
      local indexes = {}
      local pool = spawn(Router.custom(2, echo, function(routees, state)
        indexes[#indexes + 1] = state.message_index
        return routees[1]
      end))

      tell_each(kit(), pool, "a", "b")
      pool:tell(troupe.Kill)
      kit():settle()
      tell_each(kit(), pool, "c")

      assert.are.same({ 0, 1, 0 }, indexes)
    end)

    local function pool_with(seen, strategy)
      return spawn(Router.custom(3, recorder(seen), strategy), "workers")
    end

    it("RTR-10 takes a ref", function()
      local seen = {}
      local pool = pool_with(seen, function(routees) return routees[2] end)

      tell_each(kit(), pool, "a", "b")

      assert.are.same({ "routee-2:a", "routee-2:b" }, seen)
    end)

    it("RTR-10 takes a list of refs, and fans out in its order", function()
      local seen = {}
      local pool = pool_with(seen, function(routees) return { routees[3], routees[1] } end)
      kit():settle()

      pool:tell("a")
      kit():settle()

      assert.are.same({ "routee-3:a", "routee-1:a" }, seen)
    end)

    it("RTR-10 takes an iterator of refs", function()
      local seen = {}
      local pool = pool_with(seen, function(routees)
        return coroutine.wrap(function()
          coroutine.yield(routees[3])
          coroutine.yield(routees[2])
        end)
      end)
      kit():settle()

      pool:tell("a")
      kit():settle()

      assert.are.same({ "routee-3:a", "routee-2:a" }, seen)
    end)

    it("RTR-10 delivers twice to a routee that is given twice", function()
      local seen = {}
      local pool = pool_with(seen, function(routees) return { routees[1], routees[1] } end)

      pool:tell("a")
      kit():settle()

      assert.are.same({ "routee-1:a", "routee-1:a" }, seen)
    end)

    it("RTR-10 delivers to a live actor that is no routee", function()
      local seen = {}
      local outsider = spawn(recorder(seen), "outsider")
      local pool = pool_with(seen, function() return outsider end)

      pool:tell("a")
      kit():settle()

      assert.are.same({ "outsider:a" }, seen)
    end)

    for _, entry in ipairs {
      { "an empty list", function() return {} end },
      { "an empty iterator", function() return function() end end },
    } do
      it("RTR-10 drops the message in silence for " .. entry[1], function()
        local seen = {}
        local pool = pool_with(seen, entry[2])
        local letters = dead_letters(kit())

        pool:tell("a")
        kit():settle()

        assert.are.same({}, seen)
        assert.are.same({}, letters)
        assert.are.same({}, kit().logs)
      end)
    end

    it("RTR-10 keeps its routees whatever a strategy does to the list it got", function()
      local seen = {}
      local pool = pool_with(seen, function(routees, state)
        local chosen = routees[state.message_index + 1]
        for i = 1, 3 do routees[i] = nil end
        return chosen
      end)

      tell_each(kit(), pool, "a", "b", "c")
      pool:tell(Broadcast("all"))
      kit():settle()

      assert.are.same({
        "routee-1:a", "routee-2:b", "routee-3:c", "routee-1:all", "routee-2:all",
        "routee-3:all",
      }, seen)
    end)

    it("RTR-10 queues what a strategy tells its own router", function()
      local seen, pool = {}, nil
      pool = pool_with(seen, function(routees, state)
        if state.message == "a" then pool:tell("from the strategy") end
        return routees[1]
      end)

      pool:tell("a")
      pool:tell("b")
      kit():settle()

      assert.are.same({ "routee-1:a", "routee-1:b", "routee-1:from the strategy" }, seen)
    end)

    it("RTR-10 shows the strategy the routees that are left", function()
      local sizes = {}
      local pool = spawn(Router.custom(3, echo, function(routees)
        sizes[#sizes + 1] = #routees
        return routees[1]
      end), "workers")

      tell_each(kit(), pool, "a")
      stop_routee(kit(), 2)
      tell_each(kit(), pool, "b")

      assert.are.same({ 3, 2 }, sizes)
    end)
  end)

  describe("a faulty strategy", function()
    local dead_actor

    before_each(function()
      dead_actor = spawn(function() end)
      dead_actor:stop()
      kit():settle()
    end)

    local faults = {
      { "raises a string", function() error("no idea") end },
      { "raises a table", function() error { code = 7 } end },
      { "raises nil", function() error(nil) end },
      { "returns nil", function() end },
      { "returns a number", function() return 1 end },
      { "returns a string", function() return "routee-1" end },
      { "returns a list with false in it", function(routees) return { routees[1], false } end },
      { "returns a list with a number in it", function(routees) return { routees[1], 42 } end },
      { "returns an iterator of numbers", function()
        return coroutine.wrap(function() coroutine.yield(42) end)
      end },
      { "returns an iterator that raises", function()
        return function() error("no idea") end
      end },
      { "returns an actor that has stopped", function() return dead_actor end },
      { "waits", function() troupe.sleep(10) end },
      { "yields", function() coroutine.yield() end },
    }

    for _, entry in ipairs(faults) do
      local fault, strategy = entry[1], entry[2]

      it("RTR-11 that " .. fault .. " costs one message", function()
        local seen = {}
        local letters = dead_letters(kit())
        local pool = spawn(Router.custom(2, recorder(seen), function(routees, state)
          if state.message == "b" then return strategy(routees, state) end
          return routees[1]
        end), "workers")

        for _, message in ipairs { "a", "b", "c" } do pool:tell(message) end
        kit():settle()

        assert.are.same({ "routee-1:a", "routee-1:c" }, seen)
        assert.are.equal(1, #letters)
        assert.are.equal("b", letters[1].message)
        assert.are.equal("strategy-error", letters[1].reason)
        assert.are.equal("troupe://demo/user/workers", tostring(letters[1].recipient))
      end)

      it("RTR-11 that " .. fault .. " fails an ask at once", function()
        local letters = dead_letters(kit())
        local pool = spawn(Router.custom(2, echo, strategy))

        local value, err = pool:ask("a")

        assert.is_nil(value)
        assert.are.equal("strategy-error", letters[1].reason)
        assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
        assert.are.equal(0, kit():now())
      end)
    end

    it("RTR-11 that gives the router itself costs one message, and cannot loop", function()
      local seen, pool = {}, nil
      local letters = dead_letters(kit())
      pool = spawn(Router.custom(2, recorder(seen), function(routees, state)
        if state.message_index == 0 and #seen == 0 then return pool end
        return routees[1]
      end))

      pool:tell("a")
      kit():settle()

      assert.are.same({}, seen)
      assert.are.equal("strategy-error", letters[1].reason)
    end)

    it("RTR-11 is logged once, with the router's path and the cause", function()
      local pool = spawn(Router.custom(2, echo, function() error("no idea whom") end), "workers")

      pool:tell("a")
      kit():settle()

      local logged = {}
      for _, record in ipairs(kit().logs) do
        local text = record.message
        for _, value in pairs(record.fields or {}) do text = text .. tostring(value) end
        if text:find("no idea whom", 1, true) then logged[#logged + 1] = record end
      end
      assert.are.equal(1, #logged)
      assert.are.equal("troupe://demo/user/workers", tostring(logged[1].path))
    end)

    it("RTR-11 leaves the pool as it was: no restart, no index begun again", function()
      local starts, indexes = 0, {}
      local pool = spawn(Router.custom(2, {
        pre_start = function() starts = starts + 1 end,
        receive = echo,
      }, function(routees, state)
        if state.message == "bad" then error("no idea") end
        indexes[#indexes + 1] = state.message_index
        return routees[1]
      end))

      tell_each(kit(), pool, "a", "b", "bad", "c")

      assert.are.equal(2, starts)
      assert.is_true(indexes[3] > indexes[2])
    end)

    it("RTR-11 keeps the dead letter's sender", function()
      local letters = dead_letters(kit())
      local client = spawn(function() end, "client")
      local pool = spawn(Router.custom(2, echo, function() error("no idea") end))

      pool:tell("a", client)
      kit():settle()

      assert.are.equal(client, letters[1].sender)
    end)
  end)

  describe("a router without routees", function()
    for _, factory in ipairs(pools) do
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
describe("routing over random histories", function()
  local seeds = 30

  -- Runs `steps` steps against a new pool of `size`: a burst of slow mail, then a pause or none.
  -- Gives what happened, in order: { at =, cost =, pick = the routee's number }.
  local function history(make, size, seed, steps)
    local kit = testkit.system("demo", { seed = seed })
    local random = math.random
    math.randomseed(seed)
    local sent = {}
    local pool = kit.system:spawn(make(size, function(actor, n)
      sent[n].pick = math.tointeger(actor.name:match("%d+$"))
      troupe.sleep(sent[n].cost)
    end))

    for _ = 1, steps do
      for _ = 1, random(4) do
        sent[#sent + 1] = { at = kit:now(), cost = random(3) * 10 }
        pool:tell(#sent)
      end
      kit:advance(random(0, 5) * 10)
    end
    kit:advance(100000)

    kit.system:terminate()
    return sent
  end

  it("RTR-6 round_robin picks message n's routee as n modulo the size", function()
    for seed = 1, seeds do
      local size = seed % 7 + 1
      for n, mail in ipairs(history(Router.round_robin, size, seed, 40)) do
        assert.are.equal((n - 1) % size + 1, mail.pick)
      end
    end
  end)

  it("RTR-6 round_robin gives any N messages in a row to the N routees that live", function()
    for seed = 1, seeds do
      local kit = testkit.system("demo", { seed = seed })
      math.randomseed(seed)
      local picks
      local pool = kit.system:spawn(Router.round_robin(6, function(actor, n)
        picks[n] = actor.name
      end), "workers")
      kit:settle()
      local alive = { 1, 2, 3, 4, 5, 6 }

      while #alive > 0 do
        picks = {}
        for n = 1, #alive * 2 + math.random(0, 5) do
          pool:tell(n)
          if math.random(3) == 1 then kit:settle() end
        end
        kit:settle()
        for n = 2, #picks do
          for earlier = math.max(1, n - #alive + 1), n - 1 do
            assert.are_not.equal(picks[earlier], picks[n], "seed " .. seed)
          end
        end
        stop_routee(kit, table.remove(alive, math.random(#alive)))
      end

      kit.system:terminate()
    end
  end)

  it("RTR-7 random is uniform, also after each routee", function()
    local size, count = 4, 4000
    for seed = 1, 5 do
      local kit = testkit.system("demo", { seed = seed })
      local picks = {}
      local pool = kit.system:spawn(Router.random(size, function(actor, n)
        picks[n] = actor.name
      end))

      for n = 1, count do pool:tell(n) end
      kit:settle()

      -- Five standard deviations of 1000 and of 250.
      local alone, pairwise = {}, {}
      for n = 1, count do
        alone[picks[n]] = (alone[picks[n]] or 0) + 1
        local pair = picks[n] .. picks[n % count + 1]
        pairwise[pair] = (pairwise[pair] or 0) + 1
      end
      for _, hits in pairs(alone) do assert.is_true(math.abs(hits - 1000) < 137) end
      local kinds = 0
      for _, hits in pairs(pairwise) do
        kinds = kinds + 1
        assert.is_true(math.abs(hits - 250) < 77)
      end
      assert.are.equal(size * size, kinds)
      kit.system:terminate()
    end
  end)

  it("RTR-7 random picks alike for the same seed, and otherwise for another", function()
    local function picks(seed)
      local kit = testkit.system("demo", { seed = seed })
      local names = {}
      local pool = kit.system:spawn(Router.random(4, function(actor, n) names[n] = actor.name end))
      for n = 1, 64 do pool:tell(n) end
      kit:settle()
      kit.system:terminate()
      return table.concat(names, " ")
    end

    local seen = {}
    for seed = 1, seeds do
      local run = picks(seed)
      assert.are.equal(run, picks(seed))
      assert.is_nil(seen[run], "two seeds gave the same picks")
      seen[run] = true
    end
  end)

  it("RTR-9 smallest_mailbox always picks a routee with the least to do", function()
    for seed = 1, seeds do
      local size = seed % 5 + 2
      local ends = {} -- of each routee: when what it was given will be done, in order
      for i = 1, size do ends[i] = {} end

      local function load(i, now)
        local open = 0
        for _, time in ipairs(ends[i]) do
          if time > now then open = open + 1 end
        end
        return open
      end

      for _, mail in ipairs(history(Router.smallest_mailbox, size, seed, 60)) do
        local least = math.huge
        for i = 1, size do least = math.min(least, load(i, mail.at)) end
        assert.are.equal(least, load(mail.pick, mail.at), "seed " .. seed)
        local mine = ends[mail.pick]
        mine[#mine + 1] = math.max(mine[#mine] or 0, mail.at) + mail.cost
      end
    end
  end)
end)

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
      "Router%.random: size must be at most 1000000 %(got 1000001%)")
  end)
end)
