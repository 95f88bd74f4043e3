local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local pools = require "spec.support.pools"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local recorder, count_by_routee, sorted = pools.recorder, pools.count_by_routee, pools.sorted
local routee, stop_routee = pools.routee, pools.stop_routee
local dead_letters, tell_each = pools.dead_letters, pools.tell_each

local function echo(actor, message) actor:reply(message) end

describe("routing strategies", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

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
end)

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
