-- The three promises that Troupe was asked for: behaviors and strategies are Lua functions that C
-- calls; a scatter resumes whoever waits on the first reply; and what stands between a message
-- and its handler is C.

local troupe = require "troupe"
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

-- Calls of Lua functions: of this file's, and of Troupe's own that this file did not ask for. Hooks
-- belong to one coroutine, so every handler sets it where it runs.
local calls = { own = 0, handlers = 0 }

local function is_at(level, place)
  local info = debug.getinfo(level + 1, "S")
  return info and info.source:find(place, 1, true)
end

local function on_call()
  if is_at(2, "card_spec.lua") then calls.handlers = calls.handlers + 1 end
  if is_at(2, "lua/troupe/") and not is_at(3, "card_spec.lua") then calls.own = calls.own + 1 end
end

local function count_from_here() debug.sethook(on_call, "c") end

-- Does the same work in 100 pieces and in 500: the second takes no more calls of Troupe's own.
local function costs_no_lua(kit, work)
  count_from_here()
  work(kit, 100)
  calls.own, calls.handlers = 0, 0
  work(kit, 100)
  local few, few_handlers = calls.own, calls.handlers
  calls.own, calls.handlers = 0, 0
  work(kit, 500)
  debug.sethook()

  assert.is_true(calls.handlers >= few_handlers + 400)
  assert.are.equal(few, calls.own)
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
        order[#order + 1] = ("%s at %g"):format(actor.name, kit():now())
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
        order[#order + 1] = ("resumed by %s at %g"):format(winner, kit():now())
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
        order[#order + 1] = ("resumed by %s at %g"):format(winner, kit():now())
      end)

      kit():advance(30)

      assert.are.same(expected, order)
    end)

    it("ASK-2 in a coroutine of the user's own, before the losers answer", function()
      local order = {}
      local pool = scatter(order)
      coroutine.wrap(function()
        local winner = pool:ask("k")
        order[#order + 1] = ("resumed by %s at %g"):format(winner, kit():now())
      end)()

      kit():advance(30)

      assert.are.same(expected, order)
    end)
  end)

  describe("what is in C", function()
    it("MBX-1 mailboxes and the router engine: no Lua of Troupe's runs for a message", function()
      for _, factory in ipairs {
        Router.round_robin, Router.random, Router.broadcast, Router.smallest_mailbox,
      } do
        local pool = kit().system:spawn(factory(3, function() count_from_here() end))

        costs_no_lua(kit(), function(test, count)
          for n = 1, count do pool:tell(n) end
          test:settle()
        end)
      end
    end)

    it("RTR-10 a custom strategy: no Lua of Troupe's runs for a message", function()
      local pool = kit().system:spawn(Router.custom(3, function() count_from_here() end,
        function(routees) return routees[2] end))

      costs_no_lua(kit(), function(test, count)
        for n = 1, count do pool:tell(n) end
        test:settle()
      end)
    end)

    it("SG-9 scatters: no Lua of Troupe's runs for one", function()
      local pool = kit().system:spawn(Router.scatter_gather_first_completed(3, function(actor, n)
        count_from_here()
        actor.sender:tell(n)
      end))
      local caller = kit().system:spawn(function() count_from_here() end)

      costs_no_lua(kit(), function(test, count)
        for n = 1, count do pool:tell(n, caller) end
        test:settle()
      end)
    end)

    it("TMR-3 timers: no Lua of Troupe's runs when one fires", function()
      local actor = kit().system:spawn(function(self, message)
        count_from_here()
        if message ~= "tick" then self.timers:start_fixed_rate("key", "tick", message) end
      end)

      costs_no_lua(kit(), function(test, count)
        actor:tell(1000 / count)
        test:advance(1000)
      end)
    end)

    it("SUP-4 supervision: no Lua of Troupe's stands in a failure, or its restart", function()
      local stacks, traceback = {}, nil
      local function note() stacks[#stacks + 1] = callers() end
      kit().system.events:subscribe(function(event) traceback = event.traceback end,
        "actor_failed")
      local pool = kit().system:spawn(Router.round_robin(1, {
        pre_restart = note,
        post_restart = note,
        receive = function() error("no disk") end,
      }))

      pool:tell("a")
      kit():settle()

      assert.matches("card_spec.lua", traceback, 1, true)
      assert.is_nil(traceback:find("lua/troupe/", 1, true))
      assert.are.equal(2, #stacks)
      for _, stack in ipairs(stacks) do
        for _, caller in ipairs(stack) do assert.are.equal("C", caller.what) end
      end
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
