--- Scatters under hard conditions: hundreds at a time, among others, and over random histories.
local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function mute() end

local function number_of(name) return math.tointeger(name:match("%d+$")) end

describe("scatters that overlap", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  -- Of 500 messages, what becomes of each depends on its number: who asks, which routees reply, and
  -- when. Routee-1 never gets past its first message.
  local COUNT, TIMEOUT = 500, 1000

  local function delay(routee, n) return routee == 2 and n % 7 + 1 or n % 5 + 1 end

  local function succeeds(routee, n)
    if routee == 2 then return n % 4 ~= 0 end
    return n % 6 ~= 0
  end

  local broken = {}
  for n = 1, COUNT do broken[n] = troupe.error("Broken", "no disk", { n = n }) end

  local function stall_or_answer(actor, n)
    local routee = number_of(actor.name)
    if routee == 1 then return troupe.sleep(1e6) end
    local reply_to, me = actor.sender, actor.ref
    actor.system:schedule_once(delay(routee, n), function()
      reply_to:tell(succeeds(routee, n) and { n = n, by = routee } or broken[n], me)
    end)
  end

  -- Who is to answer message n, and when; nobody when all but the one that stalls fail.
  local function winner(n)
    local by, at = nil, TIMEOUT
    for routee = 2, 3 do
      if succeeds(routee, n) and delay(routee, n) < at then by, at = routee, delay(routee, n) end
    end
    return by, at
  end

  local function open_at(time)
    local open = 0
    for n = 1, COUNT do
      local _, at = winner(n)
      if at > time then open = open + 1 end
    end
    return open
  end

  local function ask_all(pool, note)
    for n = 1, COUNT do
      if n % 3 == 0 then
        kit().system:go(function() note(n, pool:ask(n, 60000)) end)
      elseif n % 3 == 1 then
        spawn(function() note(n, pool:ask(n, 60000)) end):tell("go")
      else
        pool:tell(n, spawn(function(actor, answer)
          if troupe.is_error(answer) then
            note(n, nil, answer, actor.sender)
          else
            note(n, answer, nil, actor.sender)
          end
        end))
      end
    end
  end

  it("SG-9 each get their own answer, behind a routee that is stalled", function()
    local pool = spawn(Router.scatter_gather_first_completed(3, stall_or_answer,
      { timeout_ms = TIMEOUT }), "replicas")
    local answers = {}
    ask_all(pool, function(n, value, err, from)
      answers[#answers + 1] = { n = n, value = value, err = err, from = from, at = kit():now() }
    end)

    for time = 0, 7 do
      kit():advance(time == 0 and 0 or 1)
      assert.are.equal(open_at(time), kit().system:stats().scatters, "at " .. time)
    end
    kit():advance(TIMEOUT)

    assert.are.equal(COUNT, #answers)
    local seen = {}
    for _, answer in ipairs(answers) do
      local n = answer.n
      assert.is_nil(seen[n])
      seen[n] = true
      local by, at = winner(n)
      assert.are.equal(at, answer.at, n)
      if by then
        assert.are.same({ n = n, by = by }, answer.value)
        assert.is_nil(answer.err)
        assert.are.equal("routee-" .. by, answer.from.name)
      else
        assert.is_nil(answer.value)
        local errors = answer.err.errors
        assert.are.equal("AskTimeoutError", errors[1].name)
        assert.is_true(rawequal(broken[n], errors[2]) and rawequal(broken[n], errors[3]))
        assert.are.equal(pool, answer.from)
      end
    end
    local stats = kit().system:stats()
    assert.are.same({ 0, 0 }, { stats.scatters, stats.asks })
  end)

  it("SG-9 answer one sender in the order of the replies, and then of the messages", function()
    local pool = spawn(Router.scatter_gather_first_completed(3, stall_or_answer,
      { timeout_ms = TIMEOUT }), "replicas")
    local answers = {}
    local caller = spawn(function(_, answer)
      answers[#answers + 1] = { at = kit():now(), n = answer.n, by = answer.by }
    end)
    for n = 1, COUNT do pool:tell(n, caller) end

    kit():advance(TIMEOUT)

    assert.are.equal(COUNT, #answers)
    local last = {} -- of each routee
    for i, answer in ipairs(answers) do
      local by = answer.by or "nobody"
      local before = last[by]
      assert.is_true(i == 1 or answers[i - 1].at <= answer.at)
      if answer.by and before and before.at == answer.at then
        assert.is_true(before.n < answer.n)
      end
      last[by] = answer
    end
  end)

  it("SG-9 fail behind a stalled routee each with errors of their own", function()
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, n)
      if actor.name == "routee-1" then return troupe.sleep(1e6) end
      actor:fail(broken[n])
    end, { timeout_ms = TIMEOUT }), "replicas")
    local errors = {}
    for n = 1, COUNT do
      kit():async(function()
        local _, err = pool:ask(n, 60000)
        errors[n] = err
      end)
      kit():advance(1)
    end

    assert.are.equal(0, #errors)
    kit():advance(TIMEOUT - COUNT)
    for n = 1, COUNT do
      assert.are.equal(n, #errors) -- one each millisecond, as they were asked
      assert.is_true(rawequal(broken[n], errors[n].errors[2]))
      assert.are.equal("AskTimeoutError", errors[n].errors[1].name)
      assert.are_not.equal(errors[n - 1], errors[n])
      kit():advance(1)
    end
  end)

  it("SG-12 each settle once, under any schedule", function()
    kit { log_level = "off" }:explore(function(fresh)
      local gate = {}
      local pool = fresh.system:spawn(Router.scatter_gather_first_completed(4, function(actor, n)
        local reply_to, i = actor.sender, number_of(actor.name)
        gate[#gate + 1] = function()
          reply_to:tell(i == 1 and n or troupe.error("Broken", "no disk"))
        end
        if i == 3 and n == 10 then actor:stop() end
        if i == 4 and n == 15 then error("no disk") end
      end, { timeout_ms = 10 }), "replicas")
      local answers, settled = {}, 0
      for n = 1, 20 do
        answers[n] = 0
        fresh.system:go(function()
          local value, err = pool:ask(n, 60000)
          assert(value == n or troupe.is_error(err, "AggregateError"), tostring(err))
          answers[n], settled = answers[n] + 1, settled + 1
        end)
      end
      fresh:settle()
      for _, open in ipairs(gate) do fresh.system:schedule_once(10, open) end
      fresh.system:schedule_once(10, function() pool:stop() end)

      fresh:advance(10)
      fresh:advance(10000)

      assert(settled == 20, settled .. " of 20 have settled")
      for n = 1, 20 do assert(answers[n] == 1, n) end
      assert(fresh.system:stats().scatters == 0)
    end, { seeds = 50 })
  end)
end)

describe("scatters among others", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  -- A pool of two pools of two, whose routees answer "k" and do nothing else.
  local function nested_pool()
    local inner = Router.scatter_gather_first_completed(2, function(actor, message)
      if message == "k" then actor:reply(actor.parent.name .. "/" .. actor.name) end
      if message == "fail" then actor:fail(actor.parent.name .. "/" .. actor.name) end
    end, { timeout_ms = 100 })
    return spawn(Router.scatter_gather_first_completed(2, inner, { timeout_ms = 250 }), "outer")
  end

  it("SG-1 of pools of pools are answered by the routee at the bottom", function()
    local pool = nested_pool()

    local value, err, from = pool:ask("k")

    assert.are.same({ "routee-1/routee-1", nil }, { value, err })
    assert.are.equal("troupe://demo/user/outer/routee-1/routee-1", tostring(from))
  end)

  it("SG-5 of pools of pools fail with the failures of the inner ones", function()
    local pool = nested_pool()

    local _, err, from = pool:ask("fail")

    assert.are.equal("troupe://demo/user/outer: all 2 routees failed", err.message)
    assert.are.equal(pool, from)
    for i, inner in ipairs(err.errors) do
      local name = "routee-" .. i
      assert.are.equal(("troupe://demo/user/outer/%s: all 2 routees failed"):format(name),
        inner.message)
      assert.are.same({ name .. "/routee-1", name .. "/routee-2" }, inner.errors)
    end
  end)

  it("SG-5 of pools of pools hear of the time-outs of the inner ones, when these are", function()
    local pool = nested_pool()

    local _, err = pool:ask("nobody knows")

    assert.are.equal(100, kit():now())
    for i, inner in ipairs(err.errors) do
      assert.are.equal(
        ("troupe://demo/user/outer/routee-%d: none of 2 routees replied within 100ms"):format(i),
        inner.message)
    end
  end)

  it("RTR-15 keep the routees that they began with, when these are removed meanwhile", function()
    local pool = spawn(Router.scatter_gather(3, function(actor)
      troupe.sleep(50)
      actor:reply(actor.name)
    end))
    local first = kit():async(function() return (pool:ask("k")) end)
    kit():advance(10)

    pool:tell(troupe.RemoveRoutees(2))
    pool:tell(troupe.AddRoutees(1))
    kit():settle()
    local second = kit():async(function() return (pool:ask("k")) end)
    kit():advance(100)

    local function names(replies)
      local list = {}
      for i, reply in ipairs(replies) do list[i] = reply.value end
      return list
    end
    assert.are.same({ "routee-1", "routee-2", "routee-3" }, names(first:await()))
    assert.are.same({ "routee-1", "routee-4" }, names(second:await()))
  end)

  it("SG-3 leave no dead letter of a loser that stops with the request in its mailbox", function()
    local letters = {}
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      if actor.name == "routee-1" then return actor:reply(message) end
      troupe.sleep(10)
      error("no disk")
    end, nil, { supervisor_strategy = troupe.stopping_strategy }), "replicas")
    pool:ask("in hand")
    pool:ask("queued")

    kit():advance(10)

    assert.are.equal(2, kit().system:stats().actors) -- the router and routee-1
    assert.are.same({}, letters)
  end)

  it("SG-3 let a loser pass its request on to another router afterwards", function()
    local got = {}
    local helpers = spawn(Router.broadcast(2, function(actor, message)
      got[#got + 1] = message
      actor:reply("late")
    end))
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      if actor.name == "routee-1" then return actor:reply(message) end
      troupe.sleep(20)
      actor:forward(helpers)
    end))

    assert.are.equal("k", (pool:ask("k")))
    kit():advance(20)

    assert.are.same({ "k", "k" }, got)
  end)

  it("SG-9 can be asked for by a routee of the same pool, in its handler", function()
    local pool, answer
    pool = spawn(Router.scatter_gather_first_completed(3, function(actor, message)
      if message == "k" then return actor:reply(actor.name) end
      if actor.name == "routee-1" then answer = pool:ask("k") end
    end))

    pool:tell(Broadcast("go"))
    kit():settle()

    assert.are.equal("routee-2", answer)
  end)

  it("MBX-3 lose no answer that the sender's mailbox rejects: it is a dead letter", function()
    local letters = {}
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      actor:reply("found " .. message)
    end), "replicas")
    local caller = spawn(function() troupe.sleep(100) end, "caller",
      { mailbox = { capacity = 1, overflow = "reject" } })
    caller:tell("in hand")
    kit():settle()
    caller:tell("queued")

    pool:tell("k", caller)
    kit():settle()

    assert.are.equal(1, #letters)
    assert.are.same({ "found k", "mailbox-full" }, { letters[1].message, letters[1].reason })
    assert.are.equal("routee-1", letters[1].sender.name)
    assert.are.equal(tostring(caller.path), tostring(letters[1].recipient))
  end)

  it("SG-8 of a request that was forwarded fail at once when the router stops", function()
    local pool = spawn(Router.scatter_gather_first_completed(2, mute))
    local forwarder = spawn(function(actor) actor:forward(pool) end)
    local answer = kit():async(function() return forwarder:ask("k", 60000) end)

    pool:stop()
    kit():settle()

    assert.are.equal("done", answer:status())
    local _, err, from = answer:await()
    assert.is_true(troupe.is_error(err, "AggregateError"))
    assert.are.equal(pool, from)
  end)
end)

describe("a request that asks one routee after another", function()
  local kit = new_kit.each(before_each, after_each)

  -- A pool that notes who is asked when, in `asked`; the first is asked to answer after `ms`.
  local function pool_of(size, make, options, asked, ms)
    return kit().system:spawn(make(size, function(actor)
      asked[#asked + 1] = { name = actor.name, at = kit():now() }
      if ms and #asked == 1 then
        troupe.sleep(ms)
        actor:reply(actor.name)
      end
    end, options), "replicas")
  end

  local function times(asked)
    local list = {}
    for i, entry in ipairs(asked) do list[i] = entry.at end
    return list
  end

  for name, router in pairs {
    hedged = { id = "SG-15", make = Router.hedged, delay = "delay_ms" },
    tail_chopping = { id = "SG-16", make = Router.tail_chopping, delay = "interval_ms" },
  } do
    it(router.id .. " asks nobody more by " .. name .. " once it is answered", function()
      local asked = {}
      local pool = pool_of(5, router.make, { [router.delay] = 20 }, asked, 30)

      pool:ask("k")
      kit():advance(10000)

      assert.are.same({ 0, 20 }, times(asked))
    end)

    it(router.id .. " is answered once by " .. name .. " when the next is due just then", function()
      local asked, answers = {}, {}
      local pool = pool_of(5, router.make, { [router.delay] = 20 }, asked, 20)
      local caller = kit().system:spawn(function(_, answer) answers[#answers + 1] = answer end)

      pool:tell("k", caller)
      kit():advance(10000)

      assert.are.same({ asked[1].name }, answers)
      assert.is_true(#asked <= 2)
    end)
  end

  it("SG-16 asks nobody more when its caller has given up", function()
    local asked = {}
    local pool = pool_of(5, Router.tail_chopping, { interval_ms = 20 }, asked)

    local _, err = pool:ask("k", 30)
    kit():advance(10000)

    assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    assert.are.same({ 0, 20 }, times(asked))
    assert.are.equal(0, kit().system:stats().scatters)
  end)

  it("SG-16 says how many had been asked, and how long they had", function()
    local asked = {}
    local pool = pool_of(10, Router.tail_chopping, { interval_ms = 20, timeout_ms = 50 }, asked)

    local _, err = pool:ask("k")

    assert.are.same({ 0, 20, 40 }, times(asked))
    assert.are.equal("troupe://demo/user/replicas: none of 3 routees replied within 50ms",
      err.message)
    assert.are.equal(3, #err.errors)
    for i, late in ipairs(err.errors) do
      assert.are.equal("troupe://demo/user/replicas/" .. asked[i].name, late.path)
    end
  end)

  it("SG-16 is told of those that stop before their turn, and does not wait for them", function()
    local asked = {}
    local pool = pool_of(3, Router.tail_chopping, { interval_ms = 20, timeout_ms = 50 }, asked)
    local answer = kit():async(function() return pool:ask("k") end)

    pool:tell(Broadcast(troupe.PoisonPill))
    kit():advance(50)

    local _, err = answer:await()
    assert.are.same({ 0 }, times(asked))
    assert.are.equal("troupe://demo/user/replicas: all 3 routees failed", err.message)
    assert.are.same({ "AskTimeoutError", "ActorStoppedError", "ActorStoppedError" },
      { err.errors[1].name, err.errors[2].name, err.errors[3].name })
  end)

  it("SG-16 asks in any order, and in none more often, from the first request on", function()
    local orders, count = {}, 120
    for seed = 1, count do
      local own = testkit.system("demo", { seed = seed })
      local asked = {}
      local pool = own.system:spawn(Router.tail_chopping(3, function(actor)
        asked[#asked + 1] = number_of(actor.name)
        actor:fail("no disk")
      end))
      pool:ask("k")
      local order = table.concat(asked)
      orders[order] = (orders[order] or 0) + 1
      own.system:terminate()
    end

    for _, order in ipairs { "123", "132", "213", "231", "312", "321" } do
      local times_asked = orders[order] or 0
      assert.is_true(times_asked >= count / 15, ("%s: %d times"):format(order, times_asked))
    end
  end)

  it("SG-15 costs nobody a turn when a routee leaves", function()
    local asked = {}
    local pool = kit().system:spawn(Router.hedged(3, function(actor)
      asked[#asked + 1] = number_of(actor.name)
      actor:reply(true)
    end, { delay_ms = 20 }), "replicas")
    for _ = 1, 4 do pool:ask("k") end

    kit().system:actor_selection("/user/replicas/routee-3"):resolve_one():stop()
    kit():settle()
    for _ = 1, 3 do pool:ask("k") end

    assert.are.same({ 1, 2, 3, 1, 2, 1, 2 }, asked)
  end)

  -- Latencies that are hard on a percentile.
  for name, latency in pairs {
    ["all the same"] = function() return 10 end,
    ["finer than a millisecond"] = function(n) return 0.2 + n % 10 / 100 end,
    ["in two heaps"] = function(n) return n % 2 == 0 and 1 or 100 end,
  } do
    it("SG-15 costs no more than it may when latencies are " .. name, function()
      local asked, answered, count = 0, 0, 4000
      local pool = kit().system:spawn(Router.hedged(3, function(actor, n)
        asked = asked + 1
        local reply_to, me = actor.sender, actor.ref
        actor.system:schedule_once(latency(n), function() reply_to:tell(n, me) end)
      end, { percentile = 0.95, max_extra_load = 0.05 }), "replicas")

      for n = 1, count do
        kit():async(function()
          assert(pool:ask(n) == n)
          answered = answered + 1
        end)
        if n % 4 == 0 then kit():advance(1) end
      end
      kit():advance(100)

      assert.are.equal(count, answered)
      assert.is_true(asked >= count and asked <= count * 1.05 + 10, asked .. " were asked")
    end)
  end
end)

describe("a routee that has failed fast", function()
  local kit = new_kit.each(before_each, after_each)

  -- Routee-1 answers after 10 ms; what routee-2 does is `deed`.
  local function cancelling_pool(deed)
    return kit().system:spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      if actor.name == "routee-1" then
        troupe.sleep(10)
        actor:reply(message)
      else
        deed(actor, message)
      end
    end, { cancel_losers = true }), "replicas")
  end

  it("SG-14 is no loser: what it does afterwards is not cancelled", function()
    local woke_at, cancelled
    local pool = cancelling_pool(function(actor)
      troupe.sleep(5)
      actor:fail("no disk")
      troupe.sleep(50)
      woke_at, cancelled = kit():now(), actor:cancelled()
    end)

    pool:ask("k")
    kit():advance(1000)

    assert.are.equal(55, woke_at)
    assert.is_false(cancelled)
  end)

  it("SG-14 is no loser, but all who have the request of one in hand are", function()
    local ends = {}
    local function wait(actor)
      local value, err = troupe.sleep(1000)
      ends[#ends + 1] = { actor.name, value, err.name }
    end
    local first, second = kit().system:spawn(wait, "first"), kit().system:spawn(wait, "second")
    local pool = cancelling_pool(function(actor)
      actor:forward(first)
      actor:forward(second)
      wait(actor)
    end)

    pool:ask("k")
    kit():settle()

    table.sort(ends, function(a, b) return a[1] < b[1] end)
    assert.are.same({
      { "first", nil, "CancelledError" }, { "routee-2", nil, "CancelledError" },
      { "second", nil, "CancelledError" },
    }, ends)
    assert.are.equal(10, kit():now())
  end)

  it("SG-14 is not disturbed in the request that it has turned to", function()
    local pool = cancelling_pool(function(actor, message)
      if message == "k" then
        troupe.sleep(5)
        return actor:fail("no disk")
      end
      troupe.sleep(50)
      actor:reply("undisturbed")
    end)
    kit():async(function() return pool:ask("k") end)
    local other = kit():async(function()
      return kit().system:actor_selection("/user/replicas/routee-2"):resolve_one():ask("other")
    end)

    kit():advance(1000)

    assert.are.equal("undisturbed", (other:await()))
  end)
end)

describe("a request that needs several replies", function()
  local kit = new_kit.each(before_each, after_each)

  it("SG-17 fails with the number of those that were asked, whoever has left since", function()
    local pool = kit().system:spawn(Router.scatter_gather(4, function(actor)
      if number_of(actor.name) > 2 then return end
      troupe.sleep(20)
      actor:fail("no disk")
    end, { wait_for = 3 }), "replicas")
    local answer = kit():async(function() return pool:ask("k") end)

    pool:tell(troupe.RemoveRoutees(2))
    kit():advance(20)

    local _, err = answer:await()
    assert.are.equal(
      "troupe://demo/user/replicas: 2 of 4 routees failed, and 3 replies were needed", err.message)
  end)

  it("SG-17 counts each routee once, with what it gave first", function()
    local pool = kit().system:spawn(Router.scatter_gather(3, function(actor)
      if actor.name == "routee-1" then
        actor:reply("first")
        actor:reply("second")
        actor:fail("third")
      elseif actor.name == "routee-2" then
        actor:fail("no disk")
        actor:reply("changed my mind")
      else
        troupe.sleep(20)
        actor:reply("last")
      end
    end, { wait_for = 2 }), "replicas")

    local replies = pool:ask("k")

    assert.are.equal(20, kit():now())
    assert.are.same({ "first", "last" }, { replies[1].value, replies[2].value })
    assert.are.same({ 2, "routee-1", "routee-3" },
      { #replies, replies[1].routee.name, replies[2].routee.name })
  end)
end)

describe("a loop over replies", function()
  local kit = new_kit.each(before_each, after_each)

  it("SG-18 is over with the last reply, also when it is taken by hand and not closed", function()
    local pool = kit().system:spawn(Router.broadcast(2, function(actor)
      actor:reply(actor.name)
    end))
    local taken = 0

    local replies = pool:gather("k")
    while replies() do taken = taken + 1 end

    assert.are.equal(2, taken)
    local stats = kit().system:stats()
    assert.are.same({ 0, 0 }, { stats.scatters, stats.timers })
    assert.is_nil((replies()))
  end)

  it("SG-18 ends for whoever waits for its next reply when somebody else closes it", function()
    local pool = kit().system:spawn(Router.broadcast(2, mute))
    local woke_at, reply
    kit():async(function()
      local replies <close> = pool:gather("k", 5000)
      kit().system:go(function()
        reply = replies()
        woke_at = kit():now()
      end)
      troupe.sleep(10)
    end)

    kit():advance(10)

    assert.are.equal(10, woke_at)
    assert.is_nil(reply)
  end)

  it("SG-18 tells who waits that the system ends, and ends a task at its next wait", function()
    local pool = kit().system:spawn(Router.broadcast(2, mute))
    local got = {}
    kit():async(function()
      for routee, _, err in pool:gather("k", 5000) do got[#got + 1] = { routee.name, err.name } end
    end)

    kit().system:terminate()

    assert.are.same({ { "routee-1", "SystemTerminatedError" } }, got)
  end)

  it("SG-18 ends though its message reaches more routees after the deadline", function()
    local helpers = kit().system:spawn(Router.broadcast(2, mute), "helpers")
    local pool = kit().system:spawn(Router.broadcast(2, function(actor)
      if actor.name == "routee-1" then return actor:reply("at once") end
      troupe.sleep(100)
      actor:forward(helpers)
    end), "workers")
    local got = {}

    local loop = kit():async(function()
      for routee, value, err in pool:gather("k", 50) do
        got[#got + 1] = { routee.name, value or err.name }
        troupe.sleep(200)
      end
    end)
    kit():advance(1000)

    assert.are.equal("done", loop:status())
    assert.are.same({ { "routee-1", "at once" }, { "routee-2", "AskTimeoutError" } }, got)
    assert.are.equal(0, kit().system:stats().scatters)
  end)
end)

describe("gathering over random histories", function()
  -- What a routee may do with a request, whose number is `n`.
  local deeds = {
    function(actor, n) actor:reply(n) end,
    function(actor, n)
      troupe.sleep(math.random(150))
      actor:reply(n)
    end,
    function(actor, n)
      local reply_to = actor.sender
      actor.system:schedule_once(math.random(150), function() reply_to:tell(n) end)
    end,
    function(actor) actor:fail(troupe.error("Broken", "no disk")) end,
    function(actor)
      troupe.sleep(math.random(50))
      actor:fail("no disk")
    end,
    function() error("no disk") end,
    function(actor) actor:stop() end,
    function(actor)
      troupe.sleep(math.random(50))
      actor:stop()
    end,
    function(actor, n)
      actor:stash()
      if n % 2 == 0 then actor:unstash_all() end
    end,
    mute,
  }

  local routers = {
    { id = "SG-12", name = "scatter_gather_first_completed", options = {} },
    { id = "SG-15", name = "hedged", options = { delay_ms = 10, max_extra_load = 1 } },
    { id = "SG-15", name = "hedged", options = { percentile = 0.5, max_extra_load = 1 } },
    { id = "SG-16", name = "tail_chopping", options = { interval_ms = 10 } },
    { id = "SG-17", name = "scatter_gather", options = { wait_for = "majority" } },
    { id = "SG-17", name = "scatter_gather", options = { wait_for = 1 } },
  }

  local function is_answer_to(n, answer)
    if type(answer) ~= "table" then return answer == n end
    if troupe.is_error(answer) then return troupe.is_error(answer, "AggregateError") end
    for _, reply in ipairs(answer) do
      if reply.value ~= n then return false end
    end
    return #answer > 0
  end

  local function random_options(options)
    local all = {
      timeout_ms = 100,
      on_routee_stop = ({ "respawn", "keep", "remove" })[math.random(3)],
      cancel_losers = math.random(2) == 1,
    }
    for key, value in pairs(options) do all[key] = value end
    return all
  end

  local function run(router, seed)
    local kit = testkit.system("demo", { seed = seed, log_level = "off" })
    math.randomseed(seed)
    local pool = kit.system:spawn(Router[router.name](seed % 5 + 1, function(actor, n)
      deeds[math.random(#deeds)](actor, n)
    end, random_options(router.options), {
      mailbox = { capacity = math.random(3), overflow = "reject" },
    }), "replicas", { supervisor_strategy = troupe.one_for_one { max_restarts = -1 } })

    local answers = {}
    for n = 1, 60 do
      answers[n] = {}
      pool:tell(n, kit.system:spawn(function(_, answer) table.insert(answers[n], answer) end))
      if math.random(3) == 1 then kit:advance(math.random(0, 120)) end
      if math.random(15) == 1 then pool:tell(troupe.Kill) end
    end
    kit:advance(10000)

    for n = 1, 60 do
      assert.are.equal(1, #answers[n], "seed " .. seed)
      assert.is_true(is_answer_to(n, answers[n][1]), "seed " .. seed)
    end
    local stats = kit.system:stats()
    assert.are.same({ 0, 0 }, { stats.scatters, stats.asks })
    kit.system:terminate()
    assert.are.equal(0, kit.system:stats().anchored)
  end

  for _, router in ipairs(routers) do
    local title = ("%s %s (%s) gives each message one answer"):format(router.id, router.name,
      next(router.options) or "no options")
    it(title, function()
      for seed = 1, 25 do run(router, seed) end
    end)
  end

  -- Loops over the replies of a pool of pools, whose routees do any deed or pass the message on to
  -- another pool, once at most; the loop dawdles, or is left.
  local function run_loops(seed)
    local kit = testkit.system("demo", { seed = seed, log_level = "off" })
    math.randomseed(seed)
    local function do_something(actor, n) deeds[math.random(#deeds)](actor, n) end
    local helpers = kit.system:spawn(Router.broadcast(2, do_something))
    local inner = Router.broadcast(2, function(actor, n)
      if math.random(4) > 1 then return do_something(actor, n) end
      troupe.sleep(math.random(0, 80))
      actor:forward(helpers)
    end, nil, { on_routee_stop = "respawn" })
    local pool = kit.system:spawn(Router.scatter_gather_first_completed(3, inner, {
      cancel_losers = math.random(2) == 1, on_routee_stop = "keep",
    }))
    local ended = 0

    for n = 1, 30 do
      local leave_after, dawdle = math.random(12), math.random(0, 1) * math.random(60)
      kit:async(function()
        local taken = 0
        for routee, value, err in pool:gather(n, 50) do
          assert(value == nil or value == n)
          assert(routee ~= nil and (value == nil) == (err ~= nil))
          taken = taken + 1
          if taken == leave_after then break end
          if dawdle > 0 then troupe.sleep(dawdle) end
        end
        ended = ended + 1
      end)
      if math.random(3) == 1 then kit:advance(math.random(0, 60)) end
      if math.random(15) == 1 then pool:tell(troupe.Kill) end
    end
    kit:advance(10000)

    assert.are.equal(30, ended, "seed " .. seed)
    local stats = kit.system:stats()
    assert.are.same({ 0, 0, 0 }, { stats.scatters, stats.asks, stats.tasks })
    kit.system:terminate()
    assert.are.equal(0, kit.system:stats().anchored)
  end

  it("SG-18 every loop over replies ends, and nothing is left of it", function()
    for seed = 1, 40 do run_loops(seed) end
  end)
end)
