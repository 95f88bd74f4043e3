--- Routers under conditions that have been the undoing of routers elsewhere.
local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function first_routee(routees) return routees[1] end

local pools = {
  round_robin = Router.round_robin,
  random = Router.random,
  broadcast = Router.broadcast,
  smallest_mailbox = Router.smallest_mailbox,
  custom = function(size, routee, ...)
    return Router.custom(size, routee, first_routee, ...)
  end,
  scatter_gather_first_completed = function(size, routee, routee_options, pool_options)
    return Router.scatter_gather_first_completed(size, routee, pool_options, routee_options)
  end,
}

describe("routers in hard conditions", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  local function routee(n)
    return (kit().system:actor_selection("/user/workers/routee-" .. n):resolve_one())
  end

  local function dead_letters()
    local letters = {}
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    return letters
  end

  local function recorder(seen)
    return function(actor, message) seen[#seen + 1] = actor.name .. ":" .. tostring(message) end
  end

  describe("a routee that stops with a backlog", function()
    -- Two routees with five messages each; routee-2 is to stop behind its five.
    local function draining_pool(make, seen)
      local pool = spawn(make(2, function(actor, message)
        if message ~= "backlog" then seen[#seen + 1] = actor.name end
        troupe.sleep(10)
        if actor.sender then actor:reply(message) end
      end), "workers")
      for _ = 1, 5 do pool:tell(Broadcast("backlog")) end
      kit():settle()
      routee(2):stop()
      return pool
    end

    for name, make in pairs(pools) do
      it("RTR-12 gets no more mail by " .. name .. ", however little is left of it", function()
        local seen = {}
        local letters = dead_letters()
        local pool = draining_pool(make, seen)
        local client = spawn(function() end)

        for _ = 1, 6 do
          pool:tell("mail", client)
          kit():advance(10)
        end
        kit():advance(1000)

        assert.are.same({
          "routee-1", "routee-1", "routee-1", "routee-1", "routee-1", "routee-1",
        }, seen)
        assert.are.same({}, letters)
      end)
    end
  end)

  it("RTR-9 gives each as many ties as the others, in their order, in pools of any size", function()
    for size = 1, 9 do
      local seen, expected = {}, {}
      local pool = spawn(Router.smallest_mailbox(size, recorder(seen)))
      for n = 1, 3 * size do
        expected[n] = ("routee-%d:%d"):format((n - 1) % size + 1, n)
        pool:tell(n)
        kit():settle()
      end

      assert.are.same(expected, seen)
    end
  end)

  describe("a broadcast message", function()
    -- By name: how a Broadcast comes to a pool.
    local ways = {
      ["a timer of an actor"] = function(pool, message)
        spawn({ pre_start = function(actor)
          actor.timers:start_single("key", "due", 10)
        end, receive = function() pool:tell(message) end })
        kit():advance(10)
      end,
      ["forward"] = function(pool, message)
        spawn(function(actor) actor:forward(pool) end):tell(message)
      end,
      ["a stash"] = function(pool, message)
        local ref = spawn(function(actor, m)
          if m == "go on" then
            actor:become(function(self) self:forward(pool) end)
            actor:unstash_all()
          else
            actor:stash()
          end
        end)
        ref:tell(message)
        ref:tell("go on")
      end,
      ["a selection"] = function(pool, message)
        kit():settle()
        kit().system:actor_selection(tostring(pool.path)):tell(message)
      end,
      ["a reply"] = function(pool, message)
        spawn(function(actor) actor:reply(message) end):tell("ask", pool)
      end,
      ["watch_with"] = function(pool, message)
        local victim = spawn(function() end)
        spawn({
          pre_start = function(actor) actor:watch_with(victim, message) end,
          receive = function(_, m) pool:tell(m) end,
        })
        kit():settle()
        victim:stop()
      end,
    }

    for way, send in pairs(ways) do
      it("RTR-5 reaches each routee once, unwrapped, when it comes by " .. way, function()
        local seen = {}
        local pool = spawn(Router.round_robin(3, recorder(seen)), "workers")

        send(pool, Broadcast("announce"))
        kit():settle()
        pool:tell("next")
        kit():settle()

        assert.are.same({
          "routee-1:announce", "routee-2:announce", "routee-3:announce", "routee-1:next",
        }, seen)
      end)
    end

    it("RTR-5 is a message like any other to an actor that is no router", function()
      local message, got = Broadcast("announce"), nil
      spawn(function(_, m) got = m end):tell(message)

      kit():settle()

      assert.are.same(message, got)
      assert.are.equal(getmetatable(message), getmetatable(got))
    end)
  end)

  describe("an ask of everyone", function()
    -- Routee i ends with its request after 10 * i ms; the third one may reply first.
    local function ending(actor, message)
      local i = math.tointeger(actor.name:match("%d+$"))
      troupe.sleep(10 * i)
      if i == 3 and message == "reply" then actor:reply("at last") end
      actor:stop()
    end

    for name, make in pairs(pools) do
      it("ASK-7 fails with the last routee of " .. name .. ", and not before", function()
        local pool = spawn(make(3, ending), "workers")

        local _, err = pool:ask(Broadcast("stop"), 60000)

        assert.is_true(troupe.is_error(err, "ActorStoppedError"), tostring(err))
        assert.are.equal(30, kit():now())
      end)

      it("ASK-7 is answered by the last routee of " .. name .. " that has not stopped", function()
        local pool = spawn(make(3, ending), "workers")

        local value, err = pool:ask(Broadcast("reply"), 60000)

        assert.are.same({ "at last", nil }, { value, err })
      end)
    end
  end)

  for _, case in ipairs {
    { at = 59999, starts = 11, warnings = 1 },
    { at = 60000, starts = 12, warnings = 0 },
  } do
    it("RTR-12 respawns ten a minute: one more after " .. case.at .. " ms", function()
      local starts = 0
      spawn(Router.round_robin(1, {
        pre_start = function() starts = starts + 1 end,
        receive = function() end,
      }, nil, { on_routee_stop = "respawn" }), "workers")
      kit():settle()
      local function stop_routee()
        routee(1):stop()
        kit():settle()
      end
      for _ = 1, 10 do stop_routee() end
      assert.are.equal(11, starts)

      kit():advance(case.at)
      stop_routee()

      assert.are.equal(case.starts, starts)
      assert.are.equal(case.warnings, #kit().logs)
    end)
  end

  it("RTR-10 tells many in the order in which a strategy gives them, and again", function()
    local seen = {}
    local pool = spawn(Router.custom(4, recorder(seen), function(routees)
      return { routees[4], routees[2], routees[1], routees[3], routees[2] }
    end), "workers")
    kit():settle()

    pool:tell("a")
    kit():settle()

    assert.are.same({ "routee-4:a", "routee-2:a", "routee-2:a", "routee-1:a", "routee-3:a" }, seen)
  end)

  describe("a strategy that gives what no router can use", function()
    local unprintable = setmetatable({}, { __tostring = function() error("from __tostring") end })
    local foreign

    before_each(function()
      foreign = testkit.system("other")
    end)

    after_each(function() foreign.system:terminate() end)

    -- By name: what the strategy gives.
    local gifts = {
      ["a list with a value that cannot be printed"] = function() return { unprintable } end,
      ["a list with a hole in it"] = function(routees) return { nil, routees[1] } end,
      ["the reply ref of another ask"] = function(_, state) return state.message.reply_to end,
      ["an actor of another system"] = function() return foreign.system:spawn(function() end) end,
      ["a good ref and the router itself"] = function(routees, state)
        return { routees[1], state.message.router }
      end,
    }

    for name, give in pairs(gifts) do
      it("RTR-11 costs that message only: " .. name, function()
        local seen, letters = {}, dead_letters()
        local reply_to
        local helper = spawn(function(actor) reply_to = actor.sender end)
        local open = kit():async(function() return helper:ask("keep it open", 1000) end)
        local pool = spawn(Router.custom(2, function(_, message) seen[#seen + 1] = message end,
          function(routees, state)
            if type(state.message) == "table" then return give(routees, state) end
            return routees[2]
          end), "workers")
        local bad = { reply_to = reply_to, router = pool }

        pool:tell("before")
        pool:tell(bad)
        pool:tell("after")
        kit():settle()

        assert.are.equal(1, #letters)
        assert.are.equal(bad, letters[1].message)
        assert.are.equal("strategy-error", letters[1].reason)
        assert.are.same({ "before", "after" }, seen)
        assert.are.equal("waiting", open:status())
      end)
    end
  end)

  it("RTR-12 loses what a custom strategy gives to a stopped routee that is kept", function()
    local seen, letters = {}, dead_letters()
    local pool = spawn(Router.custom(2, recorder(seen), function(routees, state)
      return routees[state.message_index + 1]
    end, nil, { on_routee_stop = "keep" }), "workers")
    kit():settle()
    routee(1):stop()
    kit():settle()

    pool:tell("to the stopped one")
    pool:tell("to the other")
    kit():settle()

    assert.are.same({ "routee-2:to the other" }, seen)
    assert.are.equal(1, #letters)
    assert.are.same({ "to the stopped one", "stopped" }, { letters[1].message, letters[1].reason })
  end)
end)
