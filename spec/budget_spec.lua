local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"

local Router = troupe.Router

local BUDGET = 10000000

local function endless() while true do end end

--- About so many instructions, in a loop that ends.
local function count_to(instructions)
  for _ = 1, instructions // 2 do local _ = nil end
end

describe("functions that may not wait", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(...) return kit().system:spawn(...) end

  local failures

  before_each(function()
    failures = {}
    kit().system.events:subscribe(function(event) failures[#failures + 1] = event end,
      "hook_failed")
  end)

  local function pool_by(strategy, routee)
    return spawn(Router.custom(1, routee or function(actor, m) actor:reply(m) end, strategy))
  end

  -- Each has `fn` called once, by the function that is named.
  local callers = {
    ["the decider"] = function(fn)
      spawn(error, nil, { supervisor_strategy = troupe.one_for_one { decider = fn } }):tell("go")
    end,
    ["the routing strategy"] = function(fn) pool_by(fn):tell("go") end,
    ["hash_key"] = function(fn)
      spawn(Router.consistent_hashing(1, function() end, { hash_key = fn })):tell("go")
    end,
    ["the priority function"] = function(fn)
      spawn(function() end, nil, { mailbox = { priority = fn } }):tell("go")
    end,
  }

  for name, call in pairs(callers) do
    it("DISP-6 " .. name .. " is stopped when it never ends", function()
      call(endless)
      kit():settle()

      assert.are.equal(1, #failures)
      local reason = failures[1].reason
      assert.is_true(troupe.is_error(reason, "BudgetExceededError"), tostring(reason))
      assert.are.equal(name .. " ran for more than 10000000 instructions", reason.message)
      assert.are.equal(BUDGET, reason.instructions)
      local line = debug.getinfo(endless, "S").linedefined
      assert.matches(("budget_spec.lua:%d: in "):format(line), failures[1].traceback)
    end)

    it("DISP-6 " .. name .. " may take its time", function()
      local ended = false
      call(function()
        count_to(BUDGET // 2)
        ended = true
      end)
      kit():settle()

      assert.is_true(ended)
    end)
  end

  it("DISP-6 stops a predicate of decide_by", function()
    local stopped = false
    local decider = troupe.decide_by { { endless, "resume" } }
    local failing = spawn({ receive = error, post_stop = function() stopped = true end }, nil,
      { supervisor_strategy = troupe.one_for_one { decider = decider } })

    failing:tell("go")
    kit():settle()

    assert.is_true(stopped)
    assert.is_true(troupe.is_error(failures[1].reason, "BudgetExceededError"))
  end)

  it("DISP-6 ranks a message last whose priority function never ends", function()
    local handled = {}
    local ref = spawn(function(_, m) handled[#handled + 1] = m end, nil, {
      mailbox = { priority = function(m) return m == "bad" and endless() or 1 end },
    })

    for _, message in ipairs { "bad", "a", "b" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a", "b", "bad" }, handled)
  end)

  it("DISP-6 stops at the same instruction each time", function()
    local function turns()
      local count = 0
      local other = testkit.system("demo")
      other.system:spawn(Router.custom(1, function() end, function()
        while true do count = count + 1 end
      end)):tell("go")
      other:settle()
      other.system:terminate()
      return count
    end

    local count = turns()

    assert.are.equal(count, turns())
    assert.is_true(count > BUDGET / 10)
  end)

  for name, loop in pairs {
    ["a pcall"] = function() while true do pcall(endless) end end,
    ["a pcall whose result is returned"] = function() return pcall(endless) end,
    ["an xpcall whose handler never ends either"] = function() xpcall(endless, endless) end,
    ["coroutines"] = function()
      while true do coroutine.resume(coroutine.create(endless)) end
    end,
    ["many coroutines"] = function()
      while true do coroutine.wrap(count_to)(200) end
    end,
    ["table.sort"] = function() table.sort({ 3, 2, 1 }, endless) end,
    ["a __close that never ends either"] = function()
      local _ <close> = setmetatable({}, { __close = endless })
      endless()
    end,
    ["a __tostring"] = function()
      return { setmetatable({}, { __tostring = endless }) }
    end,
  } do
    it("DISP-6 is not escaped by " .. name, function()
      local pool = pool_by(function(routees, state)
        if state.message == "bad" then return loop() end
        return routees[1]
      end)

      local _, err = pool:ask("bad")

      assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
      assert.is_true(troupe.is_error(failures[1].reason, "BudgetExceededError"))
      assert.are.equal("next", (pool:ask("next")))
    end)
  end

  it("DISP-6 takes no result of a function that was stopped", function()
    local pool = spawn(Router.consistent_hashing(1, function(actor) actor:reply("routed") end, {
      hash_key = function() return pcall(endless) end, -- false would be a key
    }))

    local _, err = pool:ask("go")

    assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
  end)

  it("DISP-6 counts what such a function calls by telling as its own", function()
    local ranked = spawn(function() end, nil, { mailbox = { priority = function(n)
      count_to(BUDGET // 5 * 2)
      return n
    end } })
    local told = 0
    local pool = pool_by(function(routees)
      for n = 1, 8 do
        ranked:tell(n)
        told = n
      end
      return routees[1]
    end)

    local _, err = pool:ask("go")

    assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
    assert.are.equal(2, told)
    for _, failure in ipairs(failures) do
      assert.matches("^the routing strategy ran for more", failure.reason.message)
    end
  end)

  it("DISP-6 begins anew with each call", function()
    local pool = pool_by(function(routees)
      count_to(BUDGET // 4)
      return routees[1]
    end)

    for n = 1, 8 do assert.are.equal(n, (pool:ask(n))) end
  end)

  it("DISP-6 concerns neither handlers nor subscribers", function()
    local ended = {}
    kit().system.events:subscribe(function()
      count_to(2 * BUDGET)
      ended[#ended + 1] = "subscriber"
    end, "mine")
    kit().system.events:publish("mine")
    local pool = pool_by(function(routees) return routees[1] end, function()
      count_to(2 * BUDGET)
      ended[#ended + 1] = "handler"
    end)

    pool:tell("go")
    kit():settle()

    assert.are.same({ "subscriber", "handler" }, ended)
  end)

  it("DISP-6 spares a coroutine that was made in such a function, and goes on elsewhere", function()
    local counter
    local pool = pool_by(function(routees)
      counter = coroutine.create(function()
        coroutine.yield()
        count_to(2 * BUDGET)
        return "done"
      end)
      coroutine.resume(counter)
      return routees[1]
    end)
    pool:ask("go")

    local _, result = coroutine.resume(counter)

    assert.are.equal("done", result)
    assert.is_nil((debug.gethook(counter)))
  end)

  it("DISP-6 puts back the debug hook that was there", function()
    local lines, hooks = 0, {}
    local function on_line() lines = lines + 1 end
    local ranked = spawn(function() end, nil, { mailbox = { priority = function(n)
      hooks[1] = debug.gethook()
      return n
    end } })
    local teller = spawn(function(actor)
      debug.sethook(on_line, "l")
      ranked:tell(1)
      hooks[2] = debug.gethook()
      debug.sethook()
      ranked:tell(2)
      actor:reply(debug.gethook() == nil)
    end)

    assert.is_true((teller:ask("go")))
    assert.are_not.equal(on_line, hooks[1])
    assert.are.equal(on_line, hooks[2])
    assert.is_true(lines > 0)
  end)

  it("DISP-6 leaves a debug hook that such a function sets", function()
    local function ignore() end
    local ranked = spawn(function() end, nil, { mailbox = { priority = function(n)
      debug.sethook(ignore, "l")
      return n
    end } })
    local teller = spawn(function(actor)
      ranked:tell(1)
      local hook = debug.gethook()
      debug.sethook()
      actor:reply(hook)
    end)

    assert.are.equal(ignore, (teller:ask("go")))
  end)
end)
