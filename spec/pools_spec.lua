--- Pools that are asked for their routees, and resized: by messages, and by themselves.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast
local GetRoutees, AddRoutees = troupe.GetRoutees, troupe.AddRoutees
local RemoveRoutees = troupe.RemoveRoutees

local function ignore() end
local function echo(actor, message) actor:reply(message) end
local function first_routee(routees) return routees[1] end

-- Each takes a size, a behavior and the options of a pool.
local factories = {
  custom = function(size, routee, options)
    return Router.custom(size, routee, first_routee, nil, options)
  end,
}

for _, name in ipairs { "round_robin", "random", "broadcast", "smallest_mailbox" } do
  factories[name] = function(size, routee, options)
    return Router[name](size, routee, nil, options)
  end
end

for _, name in ipairs {
  "scatter_gather_first_completed", "hedged", "tail_chopping", "scatter_gather",
} do
  factories[name] = Router[name]
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function round_robin(size, routee, options)
  return Router.round_robin(size, routee, nil, options)
end

-- A routee that notes "name:message" in `seen`.
local function recorder(seen)
  return function(actor, message) seen[#seen + 1] = actor.name .. ":" .. tostring(message) end
end

-- The numbers of those who get mail: "1 2 3".
local function numbers(pool)
  local list = {}
  for i, routee in ipairs(pool:ask(GetRoutees)) do list[i] = routee.name:match("%d+$") end
  return table.concat(list, " ")
end

local function size_of(pool) return #pool:ask(GetRoutees) end

describe("pools", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  local function events(kind)
    local list = {}
    kit().system.events:subscribe(function(event) list[#list + 1] = event end, kind)
    return list
  end

  local function tell_each(pool, ...)
    for _, message in ipairs { ... } do
      pool:tell(message)
      kit():settle()
    end
  end

  describe("that are asked for their routees", function()
    for _, name in ipairs(sorted_names(factories)) do
      it("RTR-15 " .. name .. " answers with their refs", function()
        local pool = spawn(factories[name](3, ignore), "pool")

        local list, err, from = pool:ask(GetRoutees)

        assert.are.same(kit().system:actor_selection("/user/pool/*"):resolve(), list)
        assert.is_nil(err)
        assert.are.equal(pool, from)
      end)

      it("RTR-15 " .. name .. " does not pass requests on", function()
        local seen = {}
        local warnings = events("warning")
        local pool = spawn(factories[name](3, recorder(seen)))

        for _, request in ipairs { GetRoutees, AddRoutees(2), RemoveRoutees(1) } do
          pool:tell(request)
          pool:ask(request)
        end
        kit():settle()

        assert.are.same({}, seen)
        assert.are.same({}, warnings)
        assert.are.equal(5, size_of(pool))
      end)
    end

    it("RTR-15 gives a fresh list each time", function()
      local pool = spawn(round_robin(2, ignore))

      local list = pool:ask(GetRoutees)
      list[1] = nil

      assert.are.equal("1 2", numbers(pool))
    end)

    it("RTR-15 leaves out a routee that takes no more mail", function()
      local pool = spawn(round_robin(3, ignore))

      pool:ask(GetRoutees)[2]:stop()

      assert.are.equal("1 3", numbers(pool))
    end)

    it("RTR-15 answers the sender of a tell", function()
      local pool = spawn(round_robin(2, ignore))
      local answers = {}
      local client = spawn(function(actor, message)
        answers[#answers + 1] = { message, actor.sender }
      end)

      pool:tell(AddRoutees(1), client)
      pool:tell(GetRoutees, client)
      kit():settle()

      assert.are.same({ 3, pool }, answers[1])
      assert.are.same({ pool:ask(GetRoutees), pool }, answers[2])
    end)

    it("RTR-15 dead-letters an answer that the sender's mailbox refuses", function()
      local letters = events("dead_letter")
      local pool = spawn(round_robin(1, ignore), "pool")
      local client = spawn(function() troupe.sleep(10) end, "client",
        { mailbox = { capacity = 1, overflow = "reject" } })
      client:tell("work")
      kit():settle()
      client:tell("more work")

      pool:tell(AddRoutees(1), client)
      kit():settle()

      assert.are.same({ 2, "mailbox-full", "troupe://demo/user/client" },
        { letters[1].message, letters[1].reason, letters[1].recipient })
    end)

    it("RTR-15 answers nobody when there is no sender", function()
      local letters, seen = events("dead_letter"), {}
      local pool = spawn(round_robin(1, recorder(seen)))

      pool:tell(AddRoutees(1))
      pool:tell(GetRoutees)
      pool:tell(GetRoutees, pool)

      assert.are.equal("1 2", numbers(pool))
      assert.are.same({}, letters)
      assert.are.same({}, seen)
    end)
  end)

  describe("that are resized by messages", function()
    it("RTR-15 answer with the new size", function()
      local pool = spawn(round_robin(3, ignore))

      assert.are.equal(5, (pool:ask(AddRoutees(2))))
      assert.are.equal(4, (pool:ask(RemoveRoutees(1))))
      assert.are.equal("1 2 3 4", numbers(pool))
    end)

    it("RTR-15 do as they are told in the order of their mail", function()
      local seen = {}
      local pool = spawn(Router.broadcast(1, recorder(seen)))

      pool:tell("a")
      pool:tell(AddRoutees(1))
      pool:tell("b")
      pool:tell(RemoveRoutees(1))
      pool:tell("c")
      kit():settle()

      table.sort(seen)
      assert.are.same({ "routee-1:a", "routee-1:b", "routee-1:c", "routee-2:b" }, seen)
    end)

    it("RTR-15 use up no turn of the strategy", function()
      local seen = {}
      local pool = spawn(round_robin(3, recorder(seen)))

      tell_each(pool, 1, AddRoutees(1), 2, GetRoutees, 3, 4, RemoveRoutees(1), 5)

      assert.are.same({ "routee-1:1", "routee-2:2", "routee-3:3", "routee-4:4", "routee-1:5" },
        seen)
    end)

    it("RTR-15 call no custom strategy, and count no message_index", function()
      local indexes = {}
      local pool = spawn(Router.custom(1, ignore, function(routees, state)
        indexes[#indexes + 1] = state.message_index .. " of " .. #routees
        return {}
      end))

      tell_each(pool, "a", AddRoutees(2), "b")

      assert.are.same({ "0 of 1", "1 of 3" }, indexes)
    end)

    it("RTR-15 give new routees the options of the others", function()
      local pool = spawn(Router.round_robin(1, ignore, { mailbox = { capacity = 7 } }))

      pool:ask(AddRoutees(1))

      local seen = kit().system:inspect(pool:ask(GetRoutees)[2])
      assert.are.equal(7, seen.mailbox.capacity)
    end)

    it("RTR-15 let a removed routee handle the mail that it has", function()
      local seen = {}
      local letters = events("dead_letter")
      local pool = spawn(round_robin(2, function(actor, message)
        troupe.sleep(10)
        seen[#seen + 1] = actor.name .. ":" .. message
      end))

      for i = 1, 6 do pool:tell(i) end
      pool:tell(RemoveRoutees(1))
      for i = 7, 8 do pool:tell(i) end
      kit():advance(1000)

      table.sort(seen)
      assert.are.same({
        "routee-1:1", "routee-1:3", "routee-1:5", "routee-1:7", "routee-1:8",
        "routee-2:2", "routee-2:4", "routee-2:6",
      }, seen)
      assert.are.same({}, letters)
      assert.are.equal(2, kit().system:stats().actors)
    end)

    it("RTR-15 let a removed routee answer what it was asked", function()
      local pool = spawn(round_robin(2, function(actor)
        troupe.sleep(10)
        actor:reply(actor.name)
      end))
      local answers = {}

      for i = 1, 6 do
        kit():async(function() answers[i] = pool:ask(i) end)
      end
      kit():settle()
      pool:tell(RemoveRoutees(1))
      kit():advance(30)

      assert.are.same({ "routee-1", "routee-2", "routee-1", "routee-2", "routee-1", "routee-2" },
        answers)
    end)

    it("RTR-15 let a removed routee win a scatter that is open", function()
      local pool = spawn(Router.scatter_gather_first_completed(2, function(actor)
        troupe.sleep(actor.name == "routee-2" and 10 or 50)
        actor:reply(actor.name)
      end))
      local answer = kit():async(function() return pool:ask("key") end)
      kit():settle()

      local size = pool:ask(RemoveRoutees(1))
      kit():advance(10)

      assert.are.equal(1, size)
      assert.are.equal("routee-2", (answer:await()))
    end)

    it("RTR-15 ask new routees from the next scatter on", function()
      local asked = {}
      local pool = spawn(Router.scatter_gather_first_completed(1, recorder(asked),
        { timeout_ms = 10 }))
      kit():async(function() pool:ask("a") end)
      kit():settle()

      pool:tell(AddRoutees(2))
      kit():async(function() pool:ask("b") end)
      kit():advance(10)

      table.sort(asked)
      assert.are.same({ "routee-1:a", "routee-1:b", "routee-2:b", "routee-3:b" }, asked)
    end)

    it("RTR-15 never give the name of a routee that still drains", function()
      local pool = spawn(round_robin(3, function() troupe.sleep(1000) end))
      pool:tell(Broadcast("work"))
      kit():settle()

      pool:tell(RemoveRoutees(2))
      pool:tell(AddRoutees(2))

      assert.are.equal("1 4 5", numbers(pool))
      assert.are.equal(6, kit().system:stats().actors)
    end)

    it("RTR-15 give numbers that were never given before", function()
      local pool = spawn(round_robin(2, ignore))

      for _ = 1, 3 do
        pool:ask(AddRoutees(1))
        pool:ask(RemoveRoutees(1))
      end

      pool:ask(AddRoutees(1))
      assert.are.equal("1 2 6", numbers(pool))
    end)

    it("RTR-15 remove all when more are to be removed than there are", function()
      local pool = spawn(round_robin(3, echo))

      assert.are.equal(0, (pool:ask(RemoveRoutees(1000000))))

      local value, err = pool:ask("hello")
      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "NoRouteesError"))
      assert.are.equal(1, (pool:ask(AddRoutees(1))))
      assert.are.equal("hello", (pool:ask("hello")))
    end)

    it("RTR-15 have their first size again after a restart", function()
      local pool = spawn(round_robin(3, ignore))
      pool:ask(AddRoutees(4))
      pool:ask(RemoveRoutees(1))

      pool:tell(troupe.Kill)

      assert.are.equal("1 2 3", numbers(pool))
      pool:ask(AddRoutees(1))
      assert.are.equal("1 2 3 4", numbers(pool))
    end)

    it("RTR-15 can be restarted while a removed routee drains", function()
      local pool = spawn(round_robin(2, function() troupe.sleep(1000) end))
      pool:tell(Broadcast("work"))
      kit():settle()
      pool:tell(RemoveRoutees(2))

      pool:tell(troupe.Kill)
      kit():settle()

      assert.are.equal("1 2", numbers(pool))
      assert.are.equal(3, kit().system:stats().actors)
    end)

    it("RTR-15 do not spawn a removed routee anew", function()
      local pool = spawn(round_robin(3, ignore, { on_routee_stop = "respawn" }))

      pool:tell(RemoveRoutees(1))
      kit():settle()
      assert.are.equal("1 2", numbers(pool))

      pool:ask(GetRoutees)[1]:stop()
      kit():settle()
      assert.are.equal("1 2", numbers(pool))
    end)

    it("RTR-15 spawn one anew that had stopped by itself, however many are removed", function()
      local pool = spawn(round_robin(3, function() troupe.sleep(10) end,
        { on_routee_stop = "respawn" }))
      local third = pool:ask(GetRoutees)[3]
      third:tell("work")
      third:stop()
      kit():settle()

      assert.are.equal(0, (pool:ask(RemoveRoutees(3))))
      kit():advance(10)

      assert.are.equal("3", numbers(pool))
    end)

    it("RTR-15 remove one that has stopped and was kept", function()
      local letters = events("dead_letter")
      local pool = spawn(round_robin(2, ignore, { on_routee_stop = "keep" }))
      pool:ask(GetRoutees)[2]:stop()
      kit():settle()

      assert.are.equal(1, (pool:ask(RemoveRoutees(1))))

      tell_each(pool, "a", "b")
      assert.are.same({}, letters)
      assert.are.equal("1", numbers(pool))
    end)

    it("RTR-15 remove one that lives, where those who stop are kept", function()
      local pool = spawn(round_robin(2, ignore, { on_routee_stop = "keep" }))

      pool:ask(RemoveRoutees(1))

      assert.are.equal("1", numbers(pool))
      assert.are.equal(2, kit().system:stats().actors)
    end)

    it("RTR-15 do as they were told before they stop, and not after", function()
      local pool = spawn(round_robin(1, ignore))
      local early = kit():async(function() return pool:ask(AddRoutees(2)) end)
      kit().system:go(function() pool:stop() end)
      local late = kit():async(function() return pool:ask(AddRoutees(2)) end)
      kit():settle()

      assert.are.equal(3, (early:await()))
      local size, err = late:await()
      assert.is_nil(size)
      assert.is_true(troupe.is_error(err, "ActorStoppedError"))
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("RTR-15 let go of routees that drain when they are stopped hard themselves", function()
      local pool = spawn(round_robin(2, function() troupe.sleep(1000) end))
      pool:tell(Broadcast("work"))
      kit():settle()
      pool:tell(RemoveRoutees(1))
      kit():settle()

      assert.is_false(troupe.graceful_stop(pool, 10))
      kit():settle()

      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("RTR-15 have at most a million routees", function()
      local pool = spawn(round_robin(1, ignore), "pool")

      local size, err, from = pool:ask(AddRoutees(1000000))

      assert.is_nil(size)
      assert.is_true(troupe.is_error(err, "ResizeError"))
      assert.are.equal("troupe://demo/user/pool: a pool has at most 1000000 routees", err.message)
      assert.are.equal("troupe://demo/user/pool", err.path)
      assert.are.equal(pool, from)
      assert.are.equal("1", numbers(pool))
    end)

    it("RTR-15 tell an actor of their failure with the error", function()
      local pool = spawn(round_robin(1, ignore))
      local answer
      local client = spawn(function(_, message) answer = message end)

      pool:tell(AddRoutees(1000000), client)
      kit():settle()

      assert.is_true(troupe.is_error(answer, "ResizeError"))
    end)

    it("RTR-15 add nobody when their system terminates", function()
      local pool = spawn(round_robin(1, ignore))
      local errors = {}
      spawn({
        receive = function()
          errors[1] = select(2, pool:ask(AddRoutees(1)))
        end,
      }):tell("begin")

      kit().system:terminate()

      assert.is_true(troupe.is_error(errors[1], "SystemTerminatedError"))
    end)

    it("RTR-15 pass requests in a Broadcast on, so that pools of pools can be resized", function()
      local outer = spawn(round_robin(2, round_robin(1, ignore)), "outer")

      outer:tell(Broadcast(AddRoutees(2)))

      assert.are.equal("1 2", numbers(outer))
      for _, inner in ipairs(outer:ask(GetRoutees)) do assert.are.equal("1 2 3", numbers(inner)) end
    end)

    it("RTR-15 come with messages that other actors can tell from each other", function()
      local got = {}
      local plain = spawn(function(_, message) got[#got + 1] = message end)

      plain:tell(GetRoutees)
      plain:tell(AddRoutees(2))
      plain:tell(RemoveRoutees(3.0))
      kit():settle()

      assert.is_true(troupe.is(got[1], GetRoutees))
      assert.is_true(troupe.is(got[2], AddRoutees))
      assert.is_true(troupe.is(got[3], RemoveRoutees))
      assert.is_false(troupe.is(got[2], RemoveRoutees))
      assert.are.same({ 2, 3 }, { got[2].n, got[3].n })
      assert.are.same({ "troupe.GetRoutees", "troupe.AddRoutees(2)", "troupe.RemoveRoutees(3)" },
        { tostring(got[1]), tostring(got[2]), tostring(got[3]) })
    end)

    it("RTR-15 leave their messages as dead letters like any others", function()
      local letters = events("dead_letter")
      local pool = spawn(round_robin(1, ignore))
      pool:stop()
      kit():settle()

      pool:tell(AddRoutees(4))
      kit():settle()

      assert.are.equal(4, letters[1].message.n)
    end)

    it("RTR-15 do what a thousand random messages say", function()
      local pool = spawn(round_robin(5, echo))
      local model, given = { 1, 2, 3, 4, 5 }, 5
      local system = kit().system

      for _ = 1, 1000 do
        local n = 1 + math.floor(6 * system:random())
        if system:random() < 0.5 then
          for _ = 1, n do
            given = given + 1
            model[#model + 1] = given
          end
          assert.are.equal(#model, (pool:ask(AddRoutees(n))))
        else
          for _ = 1, n do model[#model] = nil end
          assert.are.equal(#model, (pool:ask(RemoveRoutees(n))))
        end
        if system:random() < 0.1 and #model > 0 then
          local at = 1 + math.floor(#model * system:random())
          table.remove(model, at)
          pool:ask(GetRoutees)[at]:stop()
        end
        assert.are.equal(table.concat(model, " "), numbers(pool))
      end
      kit():settle()
      assert.are.equal(1 + #model, system:stats().actors)
    end)
  end)

  describe("that resize themselves", function()
    -- Akka's DefaultResizer.
    local function change(options, size, pressed)
      local wanted = size
      if pressed >= size then wanted = wanted + math.ceil(options.rampup_rate * size) end
      if size > 0 and pressed / size < options.backoff_threshold then
        wanted = wanted - math.ceil(options.backoff_rate * size)
      end
      return math.max(options.lower_bound, math.min(options.upper_bound, wanted)) - size
    end

    local function is_busy_with_mail(routee)
      local seen = kit().system:inspect(routee)
      return seen.state == "waiting" and seen.queued > 0
    end

    local function pressed_in(routees)
      local pressed = 0
      for _, routee in ipairs(routees) do
        if is_busy_with_mail(routee) then pressed = pressed + 1 end
      end
      return pressed
    end

    -- A message every so many milliseconds; the size after each is what Akka's formulas say. Gives
    -- the sizes.
    local function load(pool, options, messages, every_ms)
      local sizes = {}
      for i = 1, messages do
        local routees = pool:ask(GetRoutees)
        local expected = #routees + change(options, #routees, pressed_in(routees))
        pool:tell("work")
        kit():settle()
        sizes[i] = size_of(pool)
        assert.are.equal(expected, sizes[i])
        kit():advance(every_ms)
      end
      return sizes
    end

    it("RTR-18 grow under load and shrink without, as Akka's formulas say", function()
      local options = {
        lower_bound = 2, upper_bound = 15, rampup_rate = 0.5, backoff_threshold = 0.4,
        backoff_rate = 0.25, messages_per_resize = 1,
      }
      local pool = spawn(round_robin(1, function() troupe.sleep(40) end, { resizer = options }))

      local busy = load(pool, options, 200, 2)
      local idle = load(pool, options, 50, 500)

      assert.are.equal(15, busy[#busy])
      assert.are.equal(2, idle[#idle])
      assert.are.equal(2, busy[1])
    end)

    it("RTR-18 have the defaults of Akka", function()
      local options = {
        lower_bound = 1, upper_bound = 10, rampup_rate = 0.2, backoff_threshold = 0.3,
        backoff_rate = 0.1,
      }
      local pool = spawn(round_robin(1, function() troupe.sleep(1000) end, { resizer = {} }))

      for i = 0, 200 do
        local routees = pool:ask(GetRoutees)
        local expected = i % 10 == 0 and change(options, #routees, pressed_in(routees)) or 0
        pool:tell("work")
        assert.are.equal(#routees + expected, size_of(pool))
      end

      assert.are.equal(10, size_of(pool))
    end)

    it("RTR-18 stay as they are without the option", function()
      local pool = spawn(round_robin(3, function() troupe.sleep(1000) end))

      for _ = 1, 100 do pool:tell("work") end

      assert.are.equal("1 2 3", numbers(pool))
    end)

    it("RTR-18 stay as they are, and cost nothing, while there is no mail", function()
      local pool = spawn(round_robin(20, ignore, { resizer = {} }))

      kit():advance(100000)

      assert.are.equal(0, kit().system:stats().timers)
      assert.are.equal(20, size_of(pool))
    end)

    for _, name in ipairs(sorted_names(factories)) do
      it("RTR-18 " .. name .. " takes the option", function()
        local pool = spawn(factories[name](2, echo, { resizer = { lower_bound = 4 } }))
        kit():settle()

        local before = size_of(pool)
        pool:ask("work")

        assert.are.same({ 2, 4 }, { before, size_of(pool) })
      end)
    end

    it("RTR-18 are resized before the message is routed", function()
      local seen = {}
      local pool = spawn(factories.broadcast(1, recorder(seen), { resizer = { lower_bound = 3 } }))

      pool:tell("a")
      kit():settle()

      table.sort(seen)
      assert.are.same({ "routee-1:a", "routee-2:a", "routee-3:a" }, seen)
    end)

    it("RTR-18 count a Broadcast, and no requests", function()
      local pool = spawn(round_robin(5, ignore, { resizer = { messages_per_resize = 1 } }))

      for _ = 1, 20 do pool:tell(GetRoutees) end
      assert.are.equal(5, size_of(pool))

      pool:tell(Broadcast("work"))
      assert.are.equal(4, size_of(pool))
    end)

    it("RTR-18 let those that leave handle their mail", function()
      local handled = 0
      local letters = events("dead_letter")
      local pool = spawn(round_robin(10, function()
        troupe.sleep(1)
        handled = handled + 1
      end, { resizer = { backoff_threshold = 1, backoff_rate = 0.5, pressure_threshold = 100 } }))

      for _ = 1, 60 do pool:tell("work") end
      kit():advance(1000)

      assert.are.equal(60, handled)
      assert.are.same({}, letters)
      assert.are.equal(1, size_of(pool))
      assert.are.equal(2, kit().system:stats().actors)
    end)

    it("RTR-18 lose no answer while they grow and shrink", function()
      local pool = spawn(round_robin(1, function(actor, message)
        troupe.sleep(message % 7)
        actor:reply(message)
      end, { resizer = { upper_bound = 50, rampup_rate = 2, messages_per_resize = 3 } }))
      local answers = 0

      for i = 1, 500 do
        kit():async(function()
          if pool:ask(i) == i then answers = answers + 1 end
        end)
        if i % 50 == 0 then kit():advance(i % 100) end
      end
      kit():advance(5000)

      assert.are.equal(500, answers)
    end)

    it("RTR-18 lose no scatter while they grow and shrink", function()
      local pool = spawn(Router.scatter_gather_first_completed(1, function(actor, message)
        troupe.sleep(message % 7)
        actor:reply(message)
      end, { resizer = { messages_per_resize = 1 } }))
      local answers = 0

      for i = 1, 200 do
        kit():async(function()
          if pool:ask(i) == i then answers = answers + 1 end
        end)
        if i % 20 == 0 then kit():advance(i % 40) end
      end
      kit():advance(4000)

      assert.are.equal(200, answers)
    end)

    it("RTR-18 have a routee again when there was none", function()
      local pool = spawn(round_robin(2, echo, { resizer = { messages_per_resize = 1 } }))
      pool:tell(RemoveRoutees(2))

      assert.are.equal("work", (pool:ask("work")))
      assert.are.equal("3", numbers(pool))
    end)

    it("RTR-18 stay as they are while the system terminates", function()
      local started, handled = 0, 0
      local pool = spawn(round_robin(1, {
        pre_start = function() started = started + 1 end,
        receive = function() handled = handled + 1 end,
      }, { resizer = { lower_bound = 3 } }))

      pool:tell("k")
      kit().system:terminate()

      assert.are.same({ 1, 1 }, { started, handled })
    end)

    it("RTR-18 refuse an upper bound below the lower one", function()
      for _, resizer in ipairs { { lower_bound = 11 }, { lower_bound = 3, upper_bound = 2 } } do
        local text = raised_here(function() round_robin(1, ignore, { resizer = resizer }) end)

        assert.matches(("resizer.upper_bound must be at least resizer.lower_bound, %d (got %d)")
          :format(resizer.lower_bound, resizer.upper_bound or 10), text, 1, true)
      end
    end)

    it("RTR-18 refuse what is no table, and options that there are not", function()
      local text = raised_here(function() round_robin(1, ignore, { resizer = true }) end)
      assert.matches("resizer must be a table (got true)", text, 1, true)

      text = raised_here(function() round_robin(1, ignore, { resizer = { upper = 3 } }) end)
      assert.matches('unknown option "resizer.upper"', text, 1, true)
    end)

  end)
end)
