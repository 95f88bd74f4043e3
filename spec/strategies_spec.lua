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

    it("RTR-9 takes no routee for empty because it is stopping", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(3, {
        receive = function(actor, message) seen[#seen + 1] = actor.name .. ":" .. message end,
        post_stop = function() troupe.sleep(200) end,
      }), "workers")
      kit():settle()
      local letters = dead_letters(kit())
      for n = 1, 15 do routee(kit(), (n - 1) % 3 + 1):tell("own " .. n) end

      kit().system:stop(routee(kit(), 2))
      for n = 1, 30 do pool:tell(n) end
      kit():settle()

      assert.are.same({ ["routee-1"] = 20, ["routee-2"] = 5, ["routee-3"] = 20 },
        count_by_routee(seen))
      kit():advance(200)
      assert.are.same({}, letters)
    end)

    it("RTR-9 rotates ties among the idle however many messages there are", function()
      local seen = {}
      local pool = spawn(Router.smallest_mailbox(4, recorder(seen)), "workers")

      tell_each(kit(), pool, 1, 2, 3, 4, 5, 6, 7, 8)

      assert.are.same({
        ["routee-1"] = 2, ["routee-2"] = 2, ["routee-3"] = 2, ["routee-4"] = 2,
      }, count_by_routee(seen))
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

    local peculiar_seen

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
      it("RTR-10 has an ask of the message time out for " .. entry[1], function()
        local pool = pool_with({}, entry[2])

        local _, err = pool:ask("a", 70)

        assert.is_true(troupe.is_error(err, "AskTimeoutError"), tostring(err))
        assert.are.equal(70, kit():now())
      end)

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

    --- What strategies may do besides: each gets the routees, the state and the pool, and whom its
    --- message reaches is as here.
    local peculiar = {
      { "sorts the list it got", "routee-3", function(routees)
        table.sort(routees, function(a, b) return a.name > b.name end)
        return routees[1]
      end },
      { "gives back the list it got", "routee-1 routee-2 routee-3", function(routees)
        return routees
      end },
      { "gives a callable object as iterator", "routee-1 routee-2 routee-3", function(routees)
        local n = 0
        return setmetatable({}, { __call = function()
          n = n + 1
          return routees[n]
        end })
      end },
      { "gives a list that stands for another", "routee-1 routee-2 routee-3", function(routees)
        return setmetatable({}, { __index = routees, __len = function() return #routees end })
      end },
      { "gives an empty list with other keys and a length of its own", "", function()
        return setmetatable({ kind = "list" }, { __len = function() return 0 end })
      end },
      { "gives a new actor", "new", function()
        return spawn(recorder(peculiar_seen), "new")
      end },
      { "collects garbage", "routee-2", function(routees)
        routees = { routees[2] }
        collectgarbage()
        return routees
      end },
      { "resumes and closes itself", "routee-2", function(routees)
        local this = coroutine.running()
        coroutine.resume(this)
        pcall(coroutine.close, this)
        return routees[2]
      end },
      { "takes a debug hook away", "routee-2", function(routees)
        debug.sethook()
        return routees[2]
      end },
      { "catches an error", "routee-2", function(routees)
        pcall(error, "no idea")
        return routees[2]
      end },
    }

    for _, entry in ipairs(peculiar) do
      it("RTR-10 takes a strategy that " .. entry[1], function()
        peculiar_seen = {}
        local pool = pool_with(peculiar_seen, function(routees, state)
          if state.message == "b" then return entry[3](routees) end
          return routees[1]
        end)

        tell_each(kit(), pool, "a", "b", "c")

        local expected = { "routee-1:a" }
        for name in entry[2]:gmatch("%S+") do expected[#expected + 1] = name .. ":b" end
        expected[#expected + 1] = "routee-1:c"
        assert.are.same(expected, peculiar_seen)
        assert.are.same({}, kit().logs)
      end)
    end

    it("RTR-10 dead-letters what a strategy gives a routee that it has stopped", function()
      local seen = {}
      local letters = dead_letters(kit())
      local pool = pool_with(seen, function(routees, state)
        if state.message == "b" then routees[1]:stop() end
        return routees[1]
      end)

      tell_each(kit(), pool, "a", "b", "c")

      assert.are.same({ "routee-1:a", "routee-2:c" }, seen)
      assert.are.same({ "b", "stopped" }, { letters[1].message, letters[1].reason })
    end)

    it("RTR-10 routes what comes before the stop that a strategy asks for", function()
      local seen, pool = {}, nil
      local letters = dead_letters(kit())
      pool = pool_with(seen, function(routees, state)
        if state.message == "b" then pool:stop() end
        return routees[1]
      end)

      for _, message in ipairs { "a", "b", "c" } do pool:tell(message) end
      kit():settle()
      pool:tell("late")
      kit():settle()

      assert.are.same({ "routee-1:a", "routee-1:b", "routee-1:c" }, seen)
      assert.are.same({ "late", "stopped" }, { letters[1].message, letters[1].reason })
    end)

    it("RTR-10 restarts when a strategy kills the router", function()
      local seen, pool = {}, nil
      local letters = dead_letters(kit())
      pool = pool_with(seen, function(routees, state)
        if state.message == "b" then pool:kill() end
        return routees[1]
      end)

      tell_each(kit(), pool, "a", "b", "c")

      assert.are.same({ "routee-1:a", "routee-1:c" }, seen)
      assert.are.same({ "b", "stopped" }, { letters[1].message, letters[1].reason })
    end)

    it("RTR-10 tells a strategy how deep a mailbox is, what is in hand included", function()
      local depths = {}
      local pool = spawn(Router.custom(2, function() troupe.sleep(100) end, function(routees, state)
        depths[#depths + 1] = { state:depth(routees[1]), state:depth(routees[2]) }
        return routees[state.message]
      end))

      tell_each(kit(), pool, 1, 1, 2, 1)

      assert.are.same({ { 0, 0 }, { 1, 0 }, { 2, 0 }, { 2, 1 } }, depths)
      kit():advance(300)
    end)

    it("RTR-10 says that what takes no more mail is deeper than all", function()
      local depths
      local gone = spawn(function() end)
      local pool = spawn(Router.custom(2, { receive = echo, post_stop = function()
        troupe.sleep(100)
      end }, function(routees, state)
        depths = { state:depth(routees[1]), state:depth(routees[2]), state:depth(gone) }
        return routees[2]
      end, nil, { on_routee_stop = "keep" }), "workers")
      gone:stop()
      stop_routee(kit(), 1)

      tell_each(kit(), pool, "a")

      assert.are.same({ math.huge, 0, math.huge }, depths)
      kit():advance(100)
    end)

    it("RTR-10 can be what smallest_mailbox is", function()
      local function shortest(routees, state)
        local best, least = nil, math.huge
        for i = 1, #routees do
          local at = (state.message_index + i - 1) % #routees + 1
          local depth = state:depth(routees[at])
          if depth < least then best, least = routees[at], depth end
        end
        return best
      end
      local seen = {}
      local pool = spawn(Router.custom(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
        if message == "stall" then troupe.sleep(100) end
      end, shortest), "workers")

      tell_each(kit(), pool, "stall", "a", "b", "c")

      assert.are.same({ "routee-1:stall", "routee-2:a", "routee-2:b", "routee-2:c" }, seen)
      kit():advance(100)
    end)

    for name, misuse in pairs {
      ["what is no ref"] = function(state) state:depth("routee-1") end,
      ["nothing"] = function(state) state:depth() end,
      ["a dot for the colon"] = function(state, routee_1) state.depth(routee_1) end,
      ["a reply ref"] = function(state, _, reply_ref) state:depth(reply_ref) end,
    } do
      it("RTR-10 refuses the depth of " .. name .. ", at the strategy's line", function()
        local message
        local reply_ref
        spawn(function(actor) reply_ref = actor.sender end):ask("for a reply ref", 1)
        local pool = spawn(Router.custom(1, echo, function(routees, state)
          message = raised_here(function() misuse(state, routees[1], reply_ref) end, misuse)
          return routees[1]
        end))

        tell_each(kit(), pool, "a")

        assert.matches("depth: ", message)
      end)
    end

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
    -- What is at hand for the strategies below.
    local dead_actor, kept_routee, foreign, reply_ref, pool

    before_each(function()
      dead_actor = spawn(function() end)
      dead_actor:stop()
      foreign = testkit.system("other")
      local asked = spawn(function(actor) reply_ref = actor.sender end)
      asked:ask("for a reply ref", 1)
      kit():settle()
    end)

    after_each(function() foreign.system:terminate() end)

    local function endless() while true do end end

    -- A list whose metamethods are these.
    local function list(metamethods, ...) return setmetatable({ ... }, metamethods) end

    -- Each strategy gets the routees and the state.
    local faults = {
      { "raises a string", function() error("no idea") end },
      { "raises a table", function() error { code = 7 } end },
      { "raises nil", function() error(nil) end },
      { "raises an error value", function() error(troupe.error("Broken", "no disk")) end },
      { "overflows the stack", function()
        collectgarbage() -- a finalizer that comes due where there is no stack for it is lost to Lua
        local function deeper() return 1 + deeper() end
        return deeper()
      end },

      { "returns nothing", function() end },
      { "returns nil and a reason", function() return nil, "no idea" end },
      { "returns false", function() return false end },
      { "returns a number", function() return 1 end },
      { "returns a string", function() return "routee-1" end },
      { "returns an error value", function() return troupe.error("Broken", "no disk") end },
      { "returns userdata", function() return io.stdout end },
      { "returns the state", function(_, state) return state end },

      { "returns a list with a hole", function(routees)
        return { routees[1], nil, routees[2] }
      end },
      { "returns a list with false in it", function(routees) return { routees[1], false } end },
      { "returns a list with a number in it", function(routees) return { routees[1], 42 } end },
      { "returns a list of lists", function(routees) return { routees } end },
      { "returns a table with other keys", function(routees) return { first = routees[1] } end },
      { "returns a list whose length is too large", function(routees)
        return list({ __len = function() return 3 end }, table.unpack(routees))
      end },
      { "returns a list whose length is endless", function(routees)
        return list {
          __len = function() return math.maxinteger end,
          __index = function() return routees[1] end,
        }
      end },
      { "returns a list whose length is negative", function(routees)
        return list({ __len = function() return -1 end }, table.unpack(routees))
      end },
      { "returns a list whose length is no number", function(routees)
        return list({ __len = function() return "two" end }, table.unpack(routees))
      end },
      { "returns a list whose __len raises", function()
        return list { __len = function() error("no length") end }
      end },
      { "returns a list whose __index raises", function()
        return list { __len = function() return 2 end, __index = function() error("no item") end }
      end },
      { "returns a thing whose __tostring raises", function()
        return { list { __tostring = function() error("no text") end } }
      end },

      { "returns an iterator of numbers", function()
        return coroutine.wrap(function() coroutine.yield(42) end)
      end },
      { "returns an iterator that raises", function(routees)
        local given = false
        return function()
          if given then error("no more") end
          given = true
          return routees[1]
        end
      end },
      { "returns an iterator that yields", function() return coroutine.yield end },
      { "returns an endless iterator", function(routees)
        return function() return routees[1] end
      end },
      { "returns an iterator that loops", function() return endless end },

      { "returns an actor that has stopped", function() return dead_actor end },
      { "returns a routee that has stopped and left", function() return kept_routee end },
      { "returns an actor of another system", function()
        return foreign.system:spawn(function() end)
      end },
      { "returns a reply ref", function() return reply_ref end },
      { "returns the router itself", function() return pool end },
      { "returns the router among others", function(routees) return { routees[1], pool } end },

      { "yields", function() coroutine.yield() end },
      { "sleeps", function() troupe.sleep(10) end },
      { "asks", function(routees) return routees[1]:ask("which?") and routees[1] end },
      { "drives its system", function(routees)
        kit():settle()
        return routees[1]
      end },

      { "loops", endless },
      { "loops in a coroutine", function() coroutine.wrap(endless)() end },
      { "loops, whatever a pcall catches", function() while true do pcall(endless) end end },
    }

    local function noted(level)
      local records = {}
      for _, record in ipairs(kit().logs) do
        if record.level == level then records[#records + 1] = record end
      end
      return records
    end

    for _, entry in ipairs(faults) do
      local fault, strategy = entry[1], entry[2]

      local function new_pool(routee_of_it)
        kept_routee = nil
        pool = spawn(Router.custom(3, routee_of_it, function(routees, state)
          kept_routee = kept_routee or routees[3]
          if state.message == "bad" then return strategy(routees, state) end
          return routees[1]
        end), "workers")
        tell_each(kit(), pool, "first")
        kept_routee:stop()
        kit():settle()
      end

      it("RTR-11 that " .. fault .. " costs one message", function()
        local seen = {}
        local letters = dead_letters(kit())
        new_pool(recorder(seen))

        for _, message in ipairs { "a", "bad", "b" } do pool:tell(message) end
        kit():settle()

        assert.are.same({ "routee-1:first", "routee-1:a", "routee-1:b" }, seen)
        assert.are.equal(1, #letters)
        assert.are.equal("bad", letters[1].message)
        assert.are.equal("strategy-error", letters[1].reason)
        assert.are.equal("troupe://demo/user/workers", tostring(letters[1].recipient))
        local errors = noted("error")
        assert.are.equal(1, #errors)
        assert.are.equal("troupe://demo/user/workers", tostring(errors[1].path))
        assert.matches("^strategy raised: ", errors[1].message)
        assert.matches("stack traceback:", errors[1].fields.traceback)
      end)

      it("RTR-11 that " .. fault .. " fails an ask at once", function()
        new_pool(echo)
        local letters = dead_letters(kit())
        local started = kit():now()

        local value, err = pool:ask("bad")

        assert.is_nil(value)
        assert.are.equal("strategy-error", letters[1].reason)
        assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
        assert.are.equal(started, kit():now())
      end)
    end

    it("RTR-11 stops to ask an iterator that goes on after a million refs", function()
      local given = 0
      pool = spawn(Router.custom(1, echo, function(routees)
        return function()
          given = given + 1
          return routees[1]
        end
      end))

      pool:tell("a")
      kit():settle()

      assert.are.equal(1000001, given)
      assert.matches("more than 1000000 refs", noted("error")[1].message)
    end)

    it("RTR-11 fails an ask with what was raised", function()
      local cause = troupe.error("Lost", "no idea whom")
      pool = spawn(Router.custom(2, echo, function() error(cause) end), "workers")

      local _, err = pool:ask("a")

      assert.are.equal("StrategyError: troupe://demo/user/workers: the routing strategy failed",
        tostring(err))
      assert.are.same({ cause, "troupe://demo/user/workers" }, { err.cause, err.path })
    end)

    it("RTR-11 fails an ask in the name of the router that it is of", function()
      local inner = Router.custom(1, echo, function() error("no idea whom", 0) end)
      pool = spawn(Router.round_robin(1, inner), "workers")

      local _, err = pool:ask("a")

      assert.are.same({ "no idea whom", "troupe://demo/user/workers/routee-1" },
        { err.cause, err.path })
    end)

    it("RTR-11 is logged with the cause, and where it was raised", function()
      pool = spawn(Router.custom(2, echo, function() error("no idea whom") end), "workers")

      pool:tell("a")
      kit():settle()

      local record = noted("error")[1]
      assert.matches("no idea whom", record.message)
      assert.matches("strategies_spec.lua:%d+: in ", record.fields.traceback)
    end)

    it("RTR-11 leaves the pool as it was: no restart, no index begun again", function()
      local starts, indexes = 0, {}
      pool = spawn(Router.custom(2, {
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
      pool = spawn(Router.custom(2, echo, function() error("no idea") end))

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
