-- The three promises that Troupe was asked for: behaviors and strategies are Lua functions that C
-- calls; a scatter resumes whoever waits on the first reply; and what stands between a message
-- and its handler is C.

local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"

local Router = troupe.Router

-- The functions on the stack above the caller's own, nearest first.
local function callers()
  local list, level = {}, 3
  while true do
    local info = debug.getinfo(level, "S")
    if not info then return list end
    list[#list + 1], level = info, level + 1
  end
end

-- How often Lua functions of Troupe's own, and of this file, are called while `fn` runs. The hook
-- counts in coroutines that are made from here on too; `prepare` makes the system, so in all of
-- its.
local function count_calls(prepare, fn)
  local own, ours = 0, 0
  local function on_call()
    local source = debug.getinfo(2, "S").source
    if source:find("lua/troupe/", 1, true) then own = own + 1 end
    if source:find("card_spec.lua", 1, true) then ours = ours + 1 end
  end
  debug.sethook(on_call, "c")
  local kit = prepare()
  own, ours = 0, 0
  fn(kit)
  debug.sethook()
  kit.system:terminate()
  return own, ours
end

describe("the card", function()
  local kit = new_kit.each(before_each, after_each)

  describe("Lua functions called through the C API", function()
    it("DISP-1 a behavior's function is called by C, with nothing else on its stack", function()
      local stack
      local actor = kit().system:spawn(function() stack = callers() end)

      actor:tell("a")
      kit():settle()

      assert.is_true(#stack > 0)
      for _, caller in ipairs(stack) do assert.are.equal("C", caller.what) end
    end)

    for _, hook in ipairs { "pre_start", "post_stop" } do
      it("LIFE-1 the hook " .. hook .. " is called by C", function()
        local stack
        local actor = kit().system:spawn {
          receive = function() end,
          [hook] = function() stack = callers() end,
        }

        actor:stop()
        kit():settle()

        assert.is_true(#stack > 0)
        for _, caller in ipairs(stack) do assert.are.equal("C", caller.what) end
      end)
    end

    it("RTR-4 a routee's handler is called by C: no router in Lua stands before it", function()
      for _, factory in ipairs {
        Router.round_robin, Router.random, Router.broadcast, Router.smallest_mailbox,
        Router.scatter_gather_first_completed,
      } do
        local stack
        local pool = kit().system:spawn(factory(1, function(actor)
          stack = callers()
          actor:reply(true)
        end))

        pool:ask("a")

        assert.is_true(#stack > 0)
        for _, caller in ipairs(stack) do assert.are.equal("C", caller.what) end
      end
    end)

    it("RTR-10 a custom strategy is a Lua function, called by C", function()
      local stack
      local pool = kit().system:spawn(Router.custom(2, function() end, function(routees)
        stack = callers()
        return routees[1]
      end))

      pool:tell("a")
      kit():settle()

      assert.are.equal("C", stack[1].what)
    end)

    it("SUP-2 a decider is a Lua function, called by C", function()
      local stack
      local actor = kit().system:spawn(function() error("no disk") end, "failing", {
        supervisor_strategy = troupe.one_for_one {
          decider = function()
            stack = callers()
            return "stop"
          end,
        },
      })

      actor:tell("a")
      kit():settle()

      assert.are.equal("C", stack[1].what)
    end)

    it("TELL-1 tell and ask are C functions", function()
      local actor = kit().system:spawn(function() end)

      assert.are.equal("C", debug.getinfo(actor.tell, "S").what)
      assert.are.equal("C", debug.getinfo(actor.ask, "S").what)
    end)
  end)

  describe("the first reply resumes who waits", function()
    -- Notes who did what, and when.
    local function scatter(order)
      local delays = { ["routee-1"] = 30, ["routee-2"] = 10, ["routee-3"] = 20 }
      return kit().system:spawn(Router.scatter_gather_first_completed(3, function(actor)
        troupe.sleep(delays[actor.name])
        order[#order + 1] = actor.name .. " at " .. kit():now()
        actor:reply(actor.name)
      end), "replicas")
    end

    local expected = {
      "routee-2 at 10", "resumed by routee-2 at 10", "routee-3 at 20", "routee-1 at 30",
    }

    it("SG-1 in a handler, before the losers answer", function()
      local order = {}
      local pool = scatter(order)
      local caller = kit().system:spawn(function()
        local winner = pool:ask("k")
        order[#order + 1] = "resumed by " .. winner .. " at " .. kit():now()
      end)

      caller:tell("go")
      kit():advance(30)

      assert.are.same(expected, order)
    end)

    it("SG-1 in a task, before the losers answer", function()
      local order = {}
      local pool = scatter(order)
      kit():async(function()
        local winner = pool:ask("k")
        order[#order + 1] = "resumed by " .. winner .. " at " .. kit():now()
      end)

      kit():advance(30)

      assert.are.same(expected, order)
    end)

    it("ASK-2 in a coroutine of the user's own, before the losers answer", function()
      local order = {}
      local pool = scatter(order)
      coroutine.wrap(function()
        local winner = pool:ask("k")
        order[#order + 1] = "resumed by " .. winner .. " at " .. kit():now()
      end)()

      kit():advance(30)

      assert.are.same(expected, order)
    end)
  end)

  describe("what is in C", function()
    -- The same work in `few` and in `many` pieces takes as many Lua calls of Troupe's own.
    local function costs_no_lua(prepare, work)
      local few = count_calls(prepare, function(test) work(test, 2) end)
      local many, handlers = count_calls(prepare, function(test) work(test, 500) end)
      assert.is_true(handlers >= 500)
      assert.are.equal(few, many)
    end

    local function silent_kit() return testkit.system("demo", { log_level = "off" }) end

    it("MBX-1 mailboxes and the router engine: no Lua of Troupe's runs for a message", function()
      for _, factory in ipairs {
        Router.round_robin, Router.random, Router.broadcast, Router.smallest_mailbox,
      } do
        local handled, pool = 0, nil
        local function prepare()
          local test = silent_kit()
          pool = test.system:spawn(factory(3, function() handled = handled + 1 end))
          test:settle()
          return test
        end

        costs_no_lua(prepare, function(test, count)
          for n = 1, count do pool:tell(n) end
          test:settle()
        end)

        assert.is_true(handled >= 502)
      end
    end)

    it("SG-9 scatters: no Lua of Troupe's runs for one", function()
      local pool, sink
      local answers = 0
      local function prepare()
        local test = silent_kit()
        pool = test.system:spawn(Router.scatter_gather_first_completed(3, function(actor, n)
          actor.sender:tell(n)
        end))
        sink = test.system:spawn(function() answers = answers + 1 end)
        test:settle()
        return test
      end

      costs_no_lua(prepare, function(test, count)
        for n = 1, count do pool:tell(n, sink) end
        test:settle()
      end)

      assert.are.equal(502, answers)
    end)

    it("TMR-5 timers: no Lua of Troupe's runs when one fires", function()
      local ticks, actor = 0, nil
      local function prepare()
        local test = silent_kit()
        actor = test.system:spawn(function(self, message)
          if message == "tick" then ticks = ticks + 1 else
            self.timers:start_fixed_rate("tick", "tick", message)
          end
        end)
        test:settle()
        return test
      end

      costs_no_lua(prepare, function(test, count)
        actor:tell(1000 / count)
        test:advance(1000)
      end)

      assert.is_true(ticks >= 502)
    end)

    it("SUP-4 supervision: no Lua of Troupe's runs for a failure and its restart", function()
      local starts, actor = 0, nil
      local function prepare()
        local test = silent_kit()
        actor = test.system:spawn({
          pre_start = function() starts = starts + 1 end,
          receive = function() error("no disk") end,
        }, "failing", { supervisor_strategy = troupe.one_for_one { max_restarts = -1 } })
        test:settle()
        return test
      end

      costs_no_lua(prepare, function(test, count)
        for n = 1, count do actor:tell(n) end
        test:settle()
      end)

      assert.are.equal(504, starts)
    end)

    it("MBX-1 queued messages are the engine's memory, not Lua's", function()
      local actor = kit().system:spawn(function() end)
      kit():settle()
      collectgarbage()
      local engine, lua = kit().system:stats().engine_bytes, collectgarbage("count")

      for n = 1, 100000 do actor:tell(n) end

      assert.is_true(kit().system:stats().engine_bytes - engine >= 1600000)
      collectgarbage()
      assert.is_true(collectgarbage("count") - lua < 100)
      kit():settle()
    end)
  end)
end)
