local testkit = require "troupe.testkit"
local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("tasks", function()
  local kit = new_kit.each(before_each, after_each)

  local function errors_logged()
    local records = {}
    for _, record in ipairs(kit().logs) do
      if record.level == "error" then records[#records + 1] = record end
    end
    return records
  end

  describe("results", function()
    it("ASK-11 gives what the function returned, nils included", function()
      local task = kit().system:go(function(...) return select("#", ...), nil, ... end, "a", nil)

      assert.are.same({ 2, nil, "a", nil, n = 4 }, table.pack(task:await()))
    end)

    it("ASK-11 gives nothing when the function returned nothing", function()
      assert.equal(0, select("#", kit().system:go(function() end):await()))
    end)

    it("ASK-11 begins in a turn of its own, not inside go", function()
      local begun = false
      kit().system:go(function() begun = true end)

      assert.is_false(begun)
      kit():settle()
      assert.is_true(begun)
    end)

    it("ASK-11 gives the result again to whoever waits later", function()
      local task = kit().system:go(function() return "one", "two" end)

      task:await()

      assert.are.same({ "one", "two" }, { task:await() })
    end)

    it("ASK-11 gives the result to everyone who waits", function()
      local task = kit().system:go(function()
        troupe.sleep(10)
        return "result"
      end)
      local got = {}
      for i = 1, 3 do
        kit():async(function() got[i] = task:await() end)
      end

      kit():advance(10)

      assert.are.same({ "result", "result", "result" }, got)
    end)

    it("ASK-11 lets a task be started and awaited inside a task", function()
      local function count_down(n)
        if n == 0 then return 0 end
        return 1 + kit().system:go(count_down, n - 1):await()
      end

      assert.equal(100, kit().system:go(count_down, 100):await())
    end)

    it("ASK-11 refuses what is no function", function()
      for _, wrong in ipairs { 42, "text", {}, false } do
        assert.error_matches(function() kit().system:go(wrong) end, "function")
      end
    end)
  end)

  describe("waiting with a budget", function()
    it("ASK-11 gives nil and a TimeoutError, and the task goes on", function()
      local task = kit().system:go(function()
        troupe.sleep(100)
        return "result"
      end)

      local value, err = task:await(40)

      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "TimeoutError"))
      assert.equal(40, kit():now())
      assert.equal("result", task:await())
      assert.equal(100, kit():now())
    end)

    it("ASK-11 leaves no timer behind when the task ends in time", function()
      kit().system:go(function() return "result" end):await(60000)

      assert.equal(0, kit().system:stats().timers)
    end)

    it("ASK-11 refuses a budget that is no positive finite number", function()
      local task = kit().system:go(function() end)

      for _, timeout in ipairs { 0, -1, 0 / 0, 1 / 0, "50", {} } do
        assert.error_matches(function() task:await(timeout) end, "timeout")
      end
    end)
  end)

  describe("failures", function()
    it("ASK-11 gives nil and the very value that the task raised", function()
      local reason = { code = 7 }
      local value, err = kit().system:go(function() error(reason) end):await()

      assert.is_nil(value)
      assert.is_true(rawequal(reason, err))
    end)

    it("ASK-11 gives what a task raised after a wait", function()
      local _, err = kit().system:go(function()
        troupe.sleep(10)
        error("boom", 0)
      end):await()

      assert.equal("boom", err)
    end)

    it("ASK-11 tells a task that raised nil from one that returned nil", function()
      local value, err = kit().system:go(function() error(nil) end):await()

      assert.is_nil(value)
      assert.is_not_nil(err)
    end)

    it("ASK-11 logs nothing about a failure that somebody waits for", function()
      kit().system:go(function() error("boom", 0) end):await()
      kit():settle()

      assert.are.same({}, kit().logs)
    end)

    it("ASK-11 logs a failure that nobody waits for once, as an error with a traceback", function()
      kit().system:go(function()
        troupe.sleep(10)
        error("no disk", 0)
      end)

      kit():advance(10)
      collectgarbage()

      local records = errors_logged()
      assert.equal(1, #records)
      local text = records[1].message .. tostring(records[1].fields.traceback)
      assert.matches("no disk", text, 1, true)
      assert.matches("tasks_spec.lua", text, 1, true)
    end)

    it("ASK-11 logs a failure whose only waiter gave up before", function()
      local task = kit().system:go(function()
        troupe.sleep(100)
        error("no disk", 0)
      end)

      task:await(10)
      kit():advance(100)

      assert.equal(1, #errors_logged())
    end)

    it("ASK-11 leaves other tasks alone when one raises", function()
      local other = kit().system:go(function()
        troupe.sleep(20)
        return "result"
      end)
      kit().system:go(function() error("boom", 0) end)

      assert.equal("result", other:await())
    end)
  end)

  describe("status", function()
    it("ASK-11 is running before the task has begun and while it runs", function()
      local task, inside
      task = kit().system:go(function() inside = task:status() end)

      assert.equal("running", task:status())
      kit():settle()
      assert.equal("running", inside)
    end)

    it("ASK-11 is waiting in a sleep, in an ask and for another task", function()
      local silent = kit().system:spawn(function() end)
      local sleeping = kit().system:go(function() troupe.sleep(100) end)
      local asking = kit().system:go(function() silent:ask("hello") end)
      local awaiting = kit().system:go(function() sleeping:await() end)

      kit():settle()

      assert.equal("waiting", sleeping:status())
      assert.equal("waiting", asking:status())
      assert.equal("waiting", awaiting:status())
    end)

    it("ASK-11 is done after a return, failed after an error", function()
      local good = kit().system:go(function() troupe.sleep(1) end)
      local bad = kit().system:go(function() error("boom", 0) end)
      good:await()
      bad:await()

      assert.equal("done", good:status())
      assert.equal("failed", bad:status())
    end)
  end)

  describe("cancel", function()
    it("ASK-11 ends the wait at once with a CancelledError", function()
      local ended
      local task = kit().system:go(function()
        local value, err = troupe.sleep(1000)
        ended = { at = kit():now(), value = value, name = err.name }
      end)
      kit():advance(10)

      task:cancel()
      kit():settle()

      assert.are.same({ at = 10, name = "CancelledError" }, ended)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("ASK-11 ends an ask, whose reply then vanishes", function()
      local letters = {}
      local function note(event) letters[#letters + 1] = event end
      kit().system.events:subscribe(note, "dead_letter")
      local sender, name
      local target = kit().system:spawn(function(actor) sender = actor.sender end)
      local task = kit().system:go(function()
        local _, err = target:ask("hello")
        name = err.name
      end)
      kit():advance(10)

      task:cancel()
      kit():settle()
      assert.equal("CancelledError", name)
      assert.equal(0, kit().system:stats().asks)

      sender:tell("late")
      kit():settle()
      assert.are.same({}, letters)
    end)

    it("ASK-11 ends a wait for another task, which goes on", function()
      local other = kit().system:go(function()
        troupe.sleep(100)
        return "result"
      end)
      local name
      local task = kit().system:go(function()
        local _, err = other:await()
        name = err.name
      end)
      kit():settle()

      task:cancel()
      kit():settle()

      assert.equal("CancelledError", name)
      assert.equal("result", other:await())
    end)

    it("ASK-11 ends the task at the next wait, closing its variables", function()
      local trace = {}
      local task = kit().system:go(function()
        local _ <close> = setmetatable({}, { __close = function() trace[#trace + 1] = "close" end })
        troupe.sleep(1000)
        trace[#trace + 1] = "cleaning up"
        pcall(troupe.sleep, 1000)
        trace[#trace + 1] = "unreachable"
      end)
      kit():settle()

      task:cancel()
      kit():settle()

      assert.are.same({ "cleaning up", "close" }, trace)
      assert.equal("cancelled", task:status())
      assert.equal(0, kit():now())
      assert.equal(0, kit().system:stats().tasks)
    end)

    it("ASK-11 gives a CancelledError to whoever waits for the task, and logs nothing", function()
      local task = kit().system:go(function()
        while true do troupe.sleep(1000) end
      end)
      local waiter = kit():async(function() return task:await() end)
      kit():settle()

      task:cancel()
      local value, err = waiter:await()

      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "CancelledError"))
      assert.are.same({}, errors_logged())
    end)

    it("ASK-11 logs what a to-be-closed variable raises when a cancelled task ends", function()
      local task = kit():async(function()
        local _ <close> = setmetatable({}, { __close = function() error("boom", 0) end })
        while true do troupe.sleep(1000) end
      end)

      task:cancel()
      local _, err = task:await()

      assert.is_true(troupe.is_error(err, "CancelledError"))
      assert.are.equal("a task failed: boom", kit().logs[1].message)
      assert.are.equal(1, #kit().logs)
    end)

    it("ASK-11 gives what a cancelled task returns when it begins no further wait", function()
      local task = kit().system:go(function()
        local _, err = troupe.sleep(1000)
        return "cleaned up after " .. err.name
      end)
      kit():settle()

      task:cancel()

      assert.equal("cleaned up after CancelledError", task:await())
      assert.equal("done", task:status())
    end)

    it("ASK-11 ends a task that has not begun at its first wait", function()
      local trace = {}
      local task = kit().system:go(function()
        trace[#trace + 1] = "begun"
        troupe.sleep(1000)
        trace[#trace + 1] = "unreachable"
      end)

      task:cancel()
      kit():settle()

      assert.are.same({ "begun" }, trace)
      assert.equal("cancelled", task:status())
    end)

    it("ASK-11 lets a wait that was answered at the same instant have its answer", function()
      local target = kit().system:spawn(function(actor, message) actor:reply(message) end)
      local answer
      local task = kit().system:go(function() answer = target:ask("hello", 10) end)
      kit().system:schedule_once(0, function() task:cancel() end)

      kit():advance(10)

      assert.is_true(answer == nil or answer == "hello")
      assert.is_not.equal("waiting", task:status())
    end)

    it("ASK-11 leaves a task alone that has ended", function()
      local task = kit().system:go(function() return "result" end)
      task:await()

      task:cancel()
      kit():settle()

      assert.equal("done", task:status())
      assert.equal("result", task:await())
    end)

    it("ASK-11 can be repeated, and come from the task itself", function()
      local task
      task = kit().system:go(function()
        task:cancel()
        task:cancel()
        troupe.sleep(1000)
        return "unreachable"
      end)

      kit():settle()

      assert.equal("cancelled", task:status())
      assert.equal(0, kit():now())
    end)
  end)

  describe("of a system that terminates", function()
    it("SYS-5 ends a task that waits again while its system stops", function()
      local tasks = {}
      for rounds = 1, 5 do
        tasks[rounds] = kit():async(function()
          for _ = 1, rounds do troupe.sleep(60000) end
        end)
      end

      kit().system:terminate()

      for _, task in ipairs(tasks) do assert.is_not.equal("waiting", task:status()) end
      assert.equal(0, kit().system:stats().tasks)
      assert.equal(0, kit().system:stats().timers)
    end)

    it("SYS-5 ends a task that waits for ever, whatever it does about errors", function()
      local task = kit():async(function()
        while true do pcall(troupe.sleep, 1000) end
      end)

      kit().system:terminate()

      assert.equal("cancelled", task:status())
    end)
  end)

  describe("sleep", function()
    it("PAT-1 wakes up a task after the time and not before", function()
      local woke_at
      kit().system:go(function()
        troupe.sleep(250)
        woke_at = kit():now()
      end)

      kit():advance(249)
      assert.is_nil(woke_at)
      kit():advance(100)

      assert.equal(250, woke_at)
    end)

    it("PAT-1 lets others run during a sleep of 0", function()
      local order = {}
      for _, name in ipairs { "a", "b" } do
        kit().system:go(function()
          order[#order + 1] = name .. "1"
          troupe.sleep(0)
          order[#order + 1] = name .. "2"
        end)
      end

      kit():settle()

      assert.are.same({ "a1", "b1", "a2", "b2" }, order)
      assert.equal(0, kit():now())
    end)

    it("PAT-1 wakes up those due at the same time in the order they went to sleep", function()
      local order = {}
      for i = 1, 5 do
        kit().system:go(function()
          troupe.sleep(10)
          order[#order + 1] = i
        end)
      end

      kit():advance(10)

      assert.are.same({ 1, 2, 3, 4, 5 }, order)
    end)

    it("PAT-1 refuses a time that is negative, infinite or no number", function()
      for _, ms in ipairs { -1, 0 / 0, 1 / 0, -1 / 0, "10", {}, false } do
        local _, why = kit().system:go(function() troupe.sleep(ms) end):await()
        assert.matches("sleep", tostring(why), 1, true)
      end
      local _, why = kit().system:go(function() troupe.sleep() end):await()
      assert.matches("sleep", tostring(why), 1, true)
    end)

    it("PAT-1 raises on the main chunk, behind a C boundary and in a nested coroutine", function()
      assert.error_matches(function() troupe.sleep(10) end, "sleep")

      local behind_sort, nested
      kit().system:go(function()
        behind_sort = select(2, pcall(table.sort, { 1, 2 }, function() troupe.sleep(10) end))
        nested = select(2, pcall(coroutine.wrap(function() troupe.sleep(10) end)))
      end):await()
      assert.matches("a C function", tostring(behind_sort), 1, true)
      assert.matches("coroutine", tostring(nested), 1, true)
    end)

    it("PAT-1 sleeps beyond 2^31 ms", function()
      local task = kit().system:go(function() troupe.sleep(2 ^ 31 + 5) end)

      kit():advance(2 ^ 31 + 4)
      assert.equal("waiting", task:status())
      kit():advance(1)

      assert.equal("done", task:status())
    end)
  end)

  it("ASK-11 can begin while the system drains, and not when it has terminated", function()
    local system = kit().system
    local value
    system:spawn(function(actor)
      troupe.sleep(10)
      value = actor.system:go(function() return "done" end):await()
    end):tell("go")
    kit():settle()
    system:terminate()

    assert.are.equal("done", value)
    assert.has_error(function() system:go(function() end) end)
  end)

  it("ASK-11 running_system is the system whose task or handler runs here", function()
    local seen = {}
    kit().system:go(function() seen[1] = troupe.running_system() end)
    kit():settle()

    assert.are.equal(kit().system, seen[1])
    assert.is_nil(troupe.running_system())
  end)

  it("RTR-7 system:random is uniform and comes from the seed", function()
    local system = kit().system
    local sum, least, most = 0, 1, 0
    for _ = 1, 10000 do
      local x = system:random()
      sum, least, most = sum + x, math.min(least, x), math.max(most, x)
    end

    assert.is_true(least >= 0 and least < 0.01 and most < 1 and most > 0.99)
    assert.is_true(math.abs(sum / 10000 - 0.5) < 0.02)
    local a, b = testkit.system("a", { seed = 7 }), testkit.system("b", { seed = 7 })
    assert.are.equal(a.system:random(), b.system:random())
  end)
end)
