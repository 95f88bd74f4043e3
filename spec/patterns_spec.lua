local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

-- What no duration and no count can be.
local NONSENSE = { -1, 0 / 0, 1 / 0, -1 / 0, "5", {}, true }

--- Every value of `options` that is given is refused, at the caller's line, by its name.
local function assert_refused(make, options, name, values)
  for _, value in ipairs(values) do
    local given = {}
    for key, other in pairs(options) do given[key] = other end
    given[name] = value
    assert.matches(name .. " must be ", raised_here(function() make(given) end), 1, true)
  end
end

describe("a circuit breaker", function()
  local kit = new_kit.each(before_each, after_each)

  local function new(options)
    options = options or {}
    options.max_failures = options.max_failures or 2
    options.reset_timeout_ms = options.reset_timeout_ms or 1000
    return troupe.circuit_breaker(options)
  end

  local function fail() return nil, "broken" end

  --- Makes a call in a task of its own, and gives what that gave.
  local function call(breaker, fn, ...)
    return kit():async(breaker.call, breaker, fn, ...):await()
  end

  --- One that has failed often enough.
  local function new_open(options)
    local breaker = new(options)
    while breaker:state() == "closed" do call(breaker, fail) end
    return breaker
  end

  local function new_half_open(options)
    local breaker = new_open(options)
    kit():advance(1000)
    return breaker
  end

  --- Waits, then does what `what` says: give "found", fail, or raise.
  local function after(ms, what)
    return function()
      troupe.sleep(ms)
      if what == "raise" then error("raised", 0) end
      if what == "fail" then return nil, "broken" end
      return "found"
    end
  end

  local function assert_refuses(breaker, remaining_ms)
    local called = false
    local value, err = call(breaker, function() called = true end)
    assert.is_nil(value)
    assert.is_true(troupe.is_error(err, "CircuitBreakerOpenError"))
    assert.are.equal(remaining_ms, err.remaining_ms)
    assert.is_false(called)
  end

  describe("that is closed", function()
    it("CB-1 calls the function with its arguments, and gives all that it returns", function()
      local breaker = new()

      local results = table.pack(call(breaker, function(...) return nil, nil, ... end, "a", nil))

      assert.are.same({ nil, nil, "a", nil, n = 4 }, results)
      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 gives the error of a call that failed", function()
      assert.are.same({ nil, "broken" }, { call(new(), fail) })
    end)

    it("CB-1 opens with the last of max_failures failures", function()
      local breaker = new { max_failures = 3 }
      call(breaker, fail)
      call(breaker, fail)
      assert.are.equal("closed", breaker:state())

      call(breaker, fail)

      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 begins to count anew after a success", function()
      local breaker = new { max_failures = 2 }
      for _ = 1, 3 do
        call(breaker, fail)
        call(breaker, function() return "found" end)
      end

      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 takes nothing, or a value with something after it, for a success", function()
      local breaker = new { max_failures = 1 }

      call(breaker, function() end)
      call(breaker, function() return "found", "in the cache" end)
      call(breaker, function() return false, "not there" end)

      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 raises on what the function raised, unchanged, and counts it", function()
      local breaker = new { max_failures = 1 }
      local reason = { "reason" }

      local _, raised = call(breaker, function() error(reason) end)

      assert.is_true(rawequal(reason, raised))
      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 leaves the traceback of what was raised as it is", function()
      local breaker = new()
      local function raise() error("no disk") end
      kit().system:spawn(function() breaker:call(raise) end):tell("go")
      kit():settle()

      local line = debug.getinfo(raise, "S").linedefined
      assert.matches("patterns_spec.lua:" .. line, kit().logs[1].fields.traceback, 1, true)
    end)

    it("CB-1 counts a raised false, too", function()
      local breaker = new { max_failures = 1 }

      call(breaker, function() error(false) end)

      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 counts neither a call whose task was cancelled nor one whose actor stopped", function()
      local breaker = new { max_failures = 1 }
      local task = kit():async(breaker.call, breaker, function()
        return troupe.sleep(1000)
      end)
      local ref = kit().system:spawn(function() breaker:call(after(1000, "fail")) end)
      ref:tell("go")
      kit():settle()

      task:cancel()
      ref:kill()
      kit():settle()

      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 does not count that a wait in the function was cancelled, raised or given", function()
      local breaker = new { max_failures = 1 }
      local task = kit():async(breaker.call, breaker, function()
        local _, err = troupe.sleep(1000)
        error(err)
      end)

      task:cancel()
      task:await()

      assert.are.equal("closed", breaker:state())
    end)
  end)

  describe("that is open", function()
    it("CB-1 refuses calls at once, and says for how long", function()
      local breaker = new_open { reset_timeout_ms = 1000 }
      kit():advance(400)

      assert_refuses(breaker, 600)

      assert.are.equal(400, kit():now())
    end)

    it("CB-1 becomes half-open when its time is over, not before", function()
      local breaker = new_open { reset_timeout_ms = 1000 }
      kit():advance(999)
      assert.are.equal("open", breaker:state())

      kit():advance(1)

      assert.are.equal("half-open", breaker:state())
    end)

    it("CB-1 leaves no timer behind", function()
      new_open()

      assert.are.equal(0, kit().system:stats().timers)
    end)

    it("CB-1 is not held open longer by calls that began before", function()
      local breaker = new { reset_timeout_ms = 1000 }
      kit():async(breaker.call, breaker, after(500, "fail"))
      call(breaker, fail)
      call(breaker, fail)

      kit():advance(1000)

      assert.are.equal("half-open", breaker:state())
    end)

    it("CB-1 is not closed by calls that began before", function()
      local breaker = new()
      kit():async(breaker.call, breaker, after(500))
      call(breaker, fail)
      call(breaker, fail)

      kit():advance(500)

      assert.are.equal("open", breaker:state())
    end)
  end)

  describe("that is half-open", function()
    it("CB-1 lets one call through at a time", function()
      local breaker = new_half_open()
      local probe = kit():async(breaker.call, breaker, after(50))

      assert_refuses(breaker, 0)

      assert.are.equal("found", probe:await())
    end)

    it("CB-1 closes with a success, and has forgotten the failures", function()
      local breaker = new_half_open { max_failures = 2 }

      call(breaker, after(0))
      assert.are.equal("closed", breaker:state())

      call(breaker, fail)
      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 opens with a single failure, for as long as before", function()
      local breaker = new_half_open { max_failures = 3, reset_timeout_ms = 1000 }

      call(breaker, fail)

      assert_refuses(breaker, 1000)
    end)

    it("CB-1 opens when the function raises", function()
      local breaker = new_half_open()

      call(breaker, after(0, "raise"))

      assert.are.equal("open", breaker:state())
    end)

    for _, late in ipairs { "found", "fail", "raise" } do
      it("CB-1 heeds no late result of a call that began while closed: " .. late, function()
        local breaker = new { max_failures = 1 }
        kit():async(breaker.call, breaker, after(1100, late))
        call(breaker, fail)
        kit():advance(1000)
        local probe = kit():async(breaker.call, breaker, after(200))

        kit():advance(100)
        assert.are.equal("half-open", breaker:state())

        assert.are.equal("found", probe:await())
      end)
    end

    for name, options in pairs { without = {}, with = { call_timeout_ms = 5000 } } do

      it("CB-1 tries the next call when the probe's task is cancelled, " .. name
        .. " a time-out", function()
        local breaker = new_half_open(options)
        local probe = kit():async(breaker.call, breaker, function() return troupe.sleep(100) end)

        probe:cancel()
        kit():settle()
        assert.are.equal("half-open", breaker:state())

        assert.are.equal("found", (call(breaker, after(0))))
        assert.are.equal("closed", breaker:state())
      end)

      it("CB-1 tries the next call when the probe's actor stops, " .. name
        .. " a time-out", function()
        local breaker = new_half_open(options)
        local parent = kit().system:spawn(function(actor, message)
          if message == "stop" then return actor:stop(actor.children[1]) end
          actor:spawn(function() breaker:call(after(100)) end):tell("go")
        end)
        parent:tell("go")
        kit():settle()
        assert_refuses(breaker, 0)

        parent:tell("stop")
        kit():settle()
        assert.are.equal("half-open", breaker:state())

        assert.are.equal("found", (call(breaker, after(0))))
      end)
    end
  end)

  describe("with a call_timeout_ms", function()
    it("CB-1 passes arguments and results, nils included", function()
      local breaker = new { call_timeout_ms = 50 }

      local results = table.pack(call(breaker, function(...) return nil, nil, ... end, "a", nil))

      assert.are.same({ nil, nil, "a", nil, n = 4 }, results)
    end)

    it("CB-1 raises on what the function raised, unchanged, and counts it", function()
      local breaker = new { call_timeout_ms = 50, max_failures = 1 }
      local reason = { "reason" }

      local _, raised = call(breaker, function() error(reason) end)

      assert.is_true(rawequal(reason, raised))
      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 gives nil and a CircuitBreakerTimeoutError, and counts a failure", function()
      local breaker = new { call_timeout_ms = 50, max_failures = 1 }

      local value, err = call(breaker, after(1000))

      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "CircuitBreakerTimeoutError"))
      assert.are.equal(50, err.timeout_ms)
      assert.are.equal(50, kit():now())
      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 takes a time-out of the function's own for an ordinary failure", function()
      local breaker = new { call_timeout_ms = 50 }
      local silent = kit().system:spawn(ignore)

      local _, err = call(breaker, function()
        return kit().system:go(function() return silent:ask("question") end):await(10)
      end)

      assert.are.equal("TimeoutError", err.name)
      assert.are.equal(10, kit():now())
    end)

    it("CB-1 lets the function run on, and heeds its late success no more", function()
      local breaker = new { call_timeout_ms = 50, max_failures = 1 }
      local ended = false
      call(breaker, function()
        troupe.sleep(100)
        ended = true
        return "found"
      end)

      kit():advance(50)

      assert.is_true(ended)
      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 heeds no late failure of a probe in the next half-open time", function()
      local breaker = new_half_open { call_timeout_ms = 50, reset_timeout_ms = 1000 }
      call(breaker, after(1100, "fail"))
      kit():advance(1000)
      assert.are.equal("half-open", breaker:state())

      kit():advance(100)

      assert.are.equal("half-open", breaker:state())
    end)

    it("CB-1 logs what the function raises when nobody waits for it any more", function()
      local breaker = new { call_timeout_ms = 50 }

      call(breaker, after(100, "raise"))
      assert.are.same({}, kit().logs)

      kit():advance(100)
      assert.are.equal("a task failed: raised", kit().logs[1].message)
    end)

    it("CB-1 cancels the function when its caller is cancelled", function()
      local breaker = new { call_timeout_ms = 5000 }
      local cut_short
      local task = kit():async(breaker.call, breaker, function()
        local _, err = troupe.sleep(1000)
        cut_short = err.name
      end)

      task:cancel()
      local _, err = task:await()
      kit():settle()

      assert.are.equal("CancelledError", err.name)
      assert.are.equal("CancelledError", cut_short)
    end)

    --- Cancels a call whose function raises what `reason` makes of the end of its wait.
    local function cancel_and_raise(reason)
      local breaker = new { call_timeout_ms = 5000 }
      local task = kit():async(breaker.call, breaker, function()
        local _, err = troupe.sleep(1000)
        error(reason(err), 0)
      end)
      task:cancel()
      kit():settle()
    end

    it("CB-1 logs nothing when a function that was cancelled raises just that", function()
      cancel_and_raise(function(err) return err end)

      assert.are.same({}, kit().logs)
    end)

    it("CB-1 logs what else it raises then", function()
      cancel_and_raise(function() return "cannot clean up" end)

      assert.are.equal("a task failed: cannot clean up", kit().logs[1].message)
    end)

    it("CB-1 lets the function reply for the actor that called", function()
      local breaker = new { call_timeout_ms = 50 }
      local ref = kit().system:spawn(function(actor, question)
        breaker:call(function() actor:reply("answer to " .. question) end)
      end)

      assert.are.equal("answer to question", (ref:ask("question")))
    end)

    it("CB-1 works while the system drains", function()
      local breaker = new { call_timeout_ms = 50 }
      local got
      kit().system:spawn(function() got = breaker:call(after(10)) end):tell("go")

      kit().system:terminate()

      assert.are.equal("found", got)
    end)
  end)

  it("CB-1 ends a task quietly that calls when its system has stopped its actors", function()
    local breaker = new { call_timeout_ms = 50 }
    local task = kit():async(function()
      troupe.sleep(60000)
      breaker:call(after(10))
    end)

    kit().system:terminate()

    assert.are.equal("cancelled", task:status())
    assert.are.same({}, kit().logs)
  end)

  describe("with is_failure", function()
    it("CB-1 counts what the function says, by what the call gave", function()
      local seen = {}
      local breaker = new {
        max_failures = 1,
        is_failure = function(value, err)
          seen[#seen + 1] = { value, err }
          return value == "busy"
        end,
      }

      call(breaker, fail)
      assert.are.equal("closed", breaker:state())
      call(breaker, function() return "busy", "code" end)

      assert.are.equal("open", breaker:state())
      assert.are.same({ { nil, "broken" }, { "busy", "code" } }, seen)
    end)

    it("CB-1 can pardon what was raised, which is raised all the same", function()
      local breaker = new { max_failures = 1, is_failure = function() return false end }

      local _, raised = call(breaker, after(0, "raise"))

      assert.are.equal("raised", raised)
      assert.are.equal("closed", breaker:state())
    end)

    it("CB-1 is not asked about a time-out, which is a failure", function()
      local breaker = new {
        max_failures = 1, call_timeout_ms = 50, is_failure = function() return false end,
      }

      call(breaker, after(100))

      assert.are.equal("open", breaker:state())
    end)

    it("CB-1 counts a failure and logs it when is_failure raises", function()
      local breaker = new { max_failures = 1, is_failure = function() error("bad predicate") end }

      assert.are.equal("found", (call(breaker, after(0))))

      assert.are.equal("open", breaker:state())
      assert.are.equal("is_failure of a circuit breaker raised", kit().logs[1].message)
      assert.matches("bad predicate", kit().logs[1].fields.traceback)
    end)
  end)

  describe("listened to", function()
    it("CB-1 tells of every change, when its state is new already", function()
      local breaker = new { max_failures = 1 }
      local heard = {}
      breaker:on_change(function(from, to)
        heard[#heard + 1] = ("%s to %s: %s"):format(from, to, breaker:state())
      end)

      call(breaker, fail)
      kit():advance(1000)
      call(breaker, fail)
      kit():advance(1000)
      call(breaker, after(0))

      assert.are.same({
        "closed to open: open",
        "open to half-open: half-open",
        "half-open to open: open",
        "open to half-open: half-open",
        "half-open to closed: closed",
      }, heard)
    end)

    it("CB-1 logs a listener that raises, and tells the others and the caller", function()
      local breaker = new { max_failures = 1 }
      local heard
      breaker:on_change(function() error("bad listener") end)
      breaker:on_change(function(_, to) heard = to end)

      local _, err = call(breaker, fail)

      assert.are.equal("broken", err)
      assert.are.equal("open", heard)
      assert.are.equal("a listener to a circuit breaker raised", kit().logs[1].message)
      assert.matches("bad listener", kit().logs[1].fields.traceback)
    end)

    it("CB-1 tells of a change only those who listened before it", function()
      local breaker = new { max_failures = 1 }
      local heard = 0
      breaker:on_change(function()
        breaker:on_change(function() heard = heard + 1 end)
      end)

      call(breaker, fail)

      assert.are.equal(0, heard)
    end)
  end)

  it("CB-1 may be called in any system, and goes by the clock of the one that opened it", function()
    local other = testkit.system("other")
    local breaker = new { max_failures = 1, reset_timeout_ms = 1000 }
    kit():advance(5000)
    call(breaker, fail)
    other:advance(2000)

    local err = select(2, other:async(breaker.call, breaker, ignore):await())
    assert.are.equal(1000, err.remaining_ms)

    kit():advance(1000)
    other:async(breaker.call, breaker, fail):await()
    kit():advance(5000)
    assert.are.equal("open", breaker:state())

    other:advance(1000)
    assert.are.equal("half-open", breaker:state())
    other.system:terminate()
  end)

  it("CB-1 lets one probe through at a time, whatever the schedule", function()
    kit():explore(function(fresh)
      local breaker, running, most = new { max_failures = 1, reset_timeout_ms = 10 }, 0, 0
      local function probe(fails)
        running = running + 1
        if breaker:state() == "half-open" then most = math.max(most, running) end
        troupe.sleep(5)
        running = running - 1
        if fails then return nil, "broken" end
        return "found"
      end
      fresh.system:go(breaker.call, breaker, probe, true)
      for _ = 1, 5 do
        fresh:advance(15)
        for i = 1, 4 do fresh.system:go(breaker.call, breaker, probe, i % 2 == 0) end
        fresh:settle()
      end
      assert.are.equal(1, most)
    end, { seeds = 200 })
  end)

  it("CB-1 refuses a call outside handlers and tasks", function()
    local breaker = new()

    assert.matches("circuit_breaker:call: to be called in a handler or a task",
      raised_here(function() breaker:call(ignore) end), 1, true)
  end)

  it("CB-1 refuses what is no function", function()
    local breaker = new()

    assert.matches("fn must be a function", raised_here(function() breaker:call("fetch") end))
    assert.matches("the listener must be a function",
      raised_here(function() breaker:on_change(42) end))
  end)

  it("CB-1 refuses wrong options", function()
    local make, good = troupe.circuit_breaker, { max_failures = 2, reset_timeout_ms = 1000 }

    assert_refused(make, good, "max_failures", { 0, 1.5, table.unpack(NONSENSE) })
    assert_refused(make, good, "reset_timeout_ms", { 0, table.unpack(NONSENSE) })
    assert_refused(make, good, "call_timeout_ms", { 0, table.unpack(NONSENSE) })
    assert_refused(make, good, "is_failure", { 1, "nil", {} })
    assert.matches("max_failures", raised_here(function() make { reset_timeout_ms = 1 } end))
    assert.matches("reset_timeout_ms", raised_here(function() make { max_failures = 1 } end))
    assert.matches("unknown option", raised_here(function() make { max_failure = 1 } end))
    assert.matches("options must be a table", raised_here(function() make(5) end))
  end)
end)

describe("a backoff supervisor", function()
  local kit = new_kit.each(before_each, after_each)

  --- A behavior with exact delays, unless `options` say otherwise.
  local function backoff(options)
    options.min_backoff_ms = options.min_backoff_ms or 100
    options.max_backoff_ms = options.max_backoff_ms or 1000
    options.random_factor = options.random_factor or 0
    return troupe.backoff_supervisor(options)
  end

  --- Spawns it as "sup".
  local function spawn(options, ...) return kit().system:spawn(backoff(options), "sup", ...) end

  --- A child that never starts, and lists when it tried.
  local function hopeless(starts)
    return {
      pre_start = function(actor)
        starts[#starts + 1] = actor.system:now()
        error("no database", 0)
      end,
      receive = ignore,
    }
  end

  --- A child that fails when it is told "fail", and lists the rest with the time.
  local function fragile(seen)
    return function(actor, message)
      if message == "fail" then error("failed", 0) end
      seen[#seen + 1] = ("%s@%d"):format(message, actor.system:now())
    end
  end

  local function letters()
    local list = {}
    kit().system.events:subscribe(function(event)
      list[#list + 1] = ("%s %s"):format(event.message, event.reason)
    end, "dead_letter")
    return list
  end

  --- A list that gets a name when the actor has stopped.
  local function watch(ref)
    local stopped = {}
    kit().system:spawn(function(actor, message)
      if troupe.is(message, troupe.Terminated) then
        stopped[#stopped + 1] = message.actor.name
      else
        actor:watch(ref)
      end
    end):tell("watch")
    kit():settle()
    return stopped
  end

  local function child() return kit().system:actor_selection("/user/sup/child"):resolve_one() end

  describe("starts its child again", function()
    it("BOS-1 after a delay that doubles with each failure in a row, and is capped", function()
      local starts = {}
      spawn { child = hopeless(starts), min_backoff_ms = 100, max_backoff_ms = 500 }

      kit():advance(2000)

      assert.are.same({ 0, 100, 300, 700, 1200, 1700 }, starts)
    end)

    it("BOS-1 at the cap for ever", function()
      local starts = {}
      spawn { child = hopeless(starts), min_backoff_ms = 1, max_backoff_ms = 1 }

      kit():advance(1200)

      assert.are.equal(1201, #starts)
    end)

    it("BOS-1 with random delays, some shorter, some longer, none beyond the bounds", function()
      local starts, shorter, longer = {}, 0, 0
      spawn {
        child = hopeless(starts), min_backoff_ms = 100, max_backoff_ms = 10000, random_factor = 0.5,
      }
      kit():advance(1000000)

      for i = 2, #starts do
        local usual = math.min(100 * 2 ^ (i - 2), 10000)
        local delay = starts[i] - starts[i - 1]
        assert.is_true(delay >= usual * 0.5 and delay <= math.min(usual * 1.5, 10000.001))
        if delay < usual * 0.75 then shorter = shorter + 1 end
        if delay > usual * 0.9 then longer = longer + 1 end
      end
      assert.is_true(shorter > 10 and longer > 10)
    end)

    it("BOS-1 with delays that may be longer than usual, below the cap", function()
      local longest = 0
      for _ = 1, 50 do
        local starts = {}
        local ref = kit().system:spawn(backoff { child = hopeless(starts), random_factor = 0.2 })
        kit():advance(130)
        longest = math.max(longest, starts[2] - starts[1])
        ref:stop()
      end

      assert.is_true(longest > 110 and longest <= 120)
    end)

    it("BOS-1 at random by 20 percent, unless an option says otherwise", function()
      local starts = {}
      kit().system:spawn(troupe.backoff_supervisor {
        child = hopeless(starts), min_backoff_ms = 100, max_backoff_ms = 100,
      })
      kit():advance(100000)

      local least = 100
      for i = 2, #starts do least = math.min(least, starts[i] - starts[i - 1]) end
      assert.is_true(least >= 80 and least < 85)
    end)

    it("BOS-1 with the same delays for the same seed, and others for another", function()
      local function starts_with(seed)
        local other, starts = testkit.system("other", { seed = seed, log_level = "off" }), {}
        other.system:spawn(backoff { child = hopeless(starts), random_factor = 0.5 })
        other:advance(5000)
        other.system:terminate()
        return starts
      end

      assert.are.same(starts_with(7), starts_with(7))
      assert.are_not.same(starts_with(7), starts_with(8))
    end)

    --- How long it stays away after each of these lives, in milliseconds.
    local function delays_after(lives_ms, reset_after_ms)
      local starts, delays = {}, {}
      local ref = spawn {
        child = {
          pre_start = function(actor) starts[#starts + 1] = actor.system:now() end,
          receive = function() error("failed", 0) end,
        },
        reset_after_ms = reset_after_ms,
      }
      kit():settle()
      for i, life_ms in ipairs(lives_ms) do
        kit():advance(life_ms)
        ref:tell("fail")
        local failed_at = kit():now()
        while #starts == i do kit():advance(1) end
        delays[i] = starts[i + 1] - failed_at
      end
      return delays
    end

    it("BOS-1 at the first delay again when it has lived for reset_after_ms", function()
      assert.are.same({ 100, 200, 100, 200 }, delays_after({ 0, 249, 250, 0 }, 250))
    end)

    it("BOS-1 at the first delay again when it has lived for min_backoff_ms, by default", function()
      assert.are.same({ 100, 200, 100, 200 }, delays_after({ 0, 99, 100, 0 }))
    end)

    it("BOS-1 without taking the time that it was away for a life", function()
      local starts = {}
      spawn { child = {
        pre_start = function(actor)
          starts[#starts + 1] = actor.system:now()
          if #starts > 2 then error("no database", 0) end
        end,
        receive = function() error("failed", 0) end,
      } }:tell("fail")
      kit():advance(100)
      kit().system:actor_selection("/user/sup"):tell("fail")
      kit():advance(1000)

      assert.are.same({ 0, 100, 300, 700 }, starts)
    end)

    it("BOS-1 when it was killed, and when a grandchild's failure escalates to it", function()
      local seen = {}
      local ref = spawn { child = function(actor, message)
        seen[#seen + 1] = ("%s@%d"):format(message, actor.system:now())
        if message == "escalate" then
          actor:spawn(function() error("failed", 0) end, nil,
            { supervisor_strategy = troupe.escalating_strategy }):tell("fail")
        end
      end }
      kit():settle()

      child():kill()
      ref:tell("escalate")
      kit():advance(100)
      ref:tell("mail")
      kit():advance(200)

      assert.are.same({ "escalate@100", "mail@300" }, seen)
    end)

    it("BOS-1 with pre_restart and post_stop at once, and post_restart after the delay", function()
      local seen = {}
      local function note(name)
        return function(actor) seen[#seen + 1] = ("%s@%d"):format(name, actor.system:now()) end
      end
      local receive = fragile(seen)
      spawn { child = {
        receive = receive,
        pre_start = note "pre_start",
        pre_restart = note "pre_restart",
        post_restart = note "post_restart",
      } }:tell("fail")
      kit():advance(100)
      kit().system:spawn(backoff { child = {
        receive = receive,
        pre_start = note "pre_start",
        post_stop = note "post_stop",
      } }):tell("fail")
      kit():advance(100)

      assert.are.same({
        "pre_start@0", "pre_restart@0", "post_restart@100",
        "pre_start@100", "post_stop@100", "pre_start@200",
      }, seen)
    end)

    it("BOS-1 with the reason in post_restart", function()
      local reasons = {}
      spawn { child = {
        receive = fragile({}),
        post_restart = function(_, reason) reasons[#reasons + 1] = reason end,
      } }:tell("fail")
      kit():advance(100)

      assert.are.same({ "failed" }, reasons)
    end)

    it("BOS-1 and says in the log when, and why", function()
      spawn { child = fragile({}) }:tell("fail")
      kit():settle()

      assert.are.equal("failed: failed; directive: restart", kit().logs[1].message)
      assert.are.equal("starts again in 100 ms (failures in a row: 1)", kit().logs[2].message)
      assert.are.equal("troupe://demo/user/sup/child", kit().logs[2].path)
    end)

    it("BOS-1 for each actor of the one behavior by itself", function()
      local starts = {}
      local behavior = backoff { child = hopeless(starts) }
      kit().system:spawn(behavior)
      kit():advance(50)
      kit().system:spawn(behavior)

      kit():advance(260)

      assert.are.same({ 0, 50, 100, 150, 300 }, starts)
    end)

    it("BOS-1 with its own fields gone, as after any restart", function()
      local seen = {}
      local ref = spawn { child = function(actor, message)
        seen[#seen + 1] = tostring(actor.last)
        actor.last = message
        if message == "fail" then error("failed", 0) end
      end }
      for _, message in ipairs { "a", "fail", "b" } do ref:tell(message) end

      kit():advance(100)

      assert.are.same({ "nil", "a", "nil" }, seen)
    end)
  end)

  describe("passes its mail to its child", function()
    it("BOS-1 in order, what waited while it was away before what is newer", function()
      local seen = {}
      local ref = spawn { child = fragile(seen) }
      for _, message in ipairs { "a", "fail", "b", "c" } do ref:tell(message) end
      kit():advance(50)
      ref:tell("d")
      kit():advance(50)
      ref:tell("e")
      kit():settle()

      assert.are.same({ "a@0", "b@100", "c@100", "d@100", "e@100" }, seen)
    end)

    it("BOS-1 with its sender, also what has waited", function()
      local senders = {}
      local me = kit().system:spawn(ignore, "me")
      local ref = spawn { child = function(actor, message)
        if message == "fail" then error("failed", 0) end
        senders[#senders + 1] = actor.sender.name
      end }
      ref:tell("a", me)
      ref:tell("fail")
      kit():settle()
      ref:tell("b", me)
      kit():advance(100)

      assert.are.same({ "me", "me" }, senders)
    end)

    it("BOS-1 so that asks are answered, by the child", function()
      local ref = spawn { child = function(actor, message)
        if message == "fail" then error("failed", 0) end
        actor:reply("answer to " .. message)
      end }
      ref:tell("fail")
      local answer = kit():async(function() return ref:ask("question") end)
      kit():advance(100)

      local value, _, from = answer:await()

      assert.are.equal("answer to question", value)
      assert.are.equal("troupe://demo/user/sup/child", tostring(from))
    end)

    it("BOS-1 whatever that is, also what compares itself with everything", function()
      local seen = 0
      local ref = spawn { child = function() seen = seen + 1 end }
      ref:tell(setmetatable({}, { __eq = function() return true end }))
      ref:tell(nil)
      kit():settle()

      assert.are.equal(2, seen)
    end)

    it("BOS-1 but at most stash_capacity while it is away: the rest is dead letters", function()
      local seen, list = {}, letters()
      local ref = spawn { child = fragile(seen), stash_capacity = 2 }
      ref:tell("fail")
      kit():settle()
      for _, message in ipairs { "a", "b", "c" } do ref:tell(message) end
      kit():settle()
      assert.are.same({ "c mailbox-full" }, list)

      kit():advance(100)
      for _, message in ipairs { "d", "e", "f" } do ref:tell(message) end
      kit():settle()

      assert.are.same({ "a@100", "b@100", "d@100", "e@100", "f@100" }, seen)
    end)

    it("BOS-1 failing an ask at once that is too many", function()
      local ref = spawn { child = fragile({}), stash_capacity = 1 }
      ref:tell("fail")
      ref:tell("a")
      kit():settle()

      local _, err = kit():async(function() return ref:ask("too much") end):await()

      assert.are.equal("MailboxFullError", err.name)
      assert.are.equal(0, kit():now())
    end)

    it("BOS-1 by default 1000 while it is away", function()
      local seen, list = {}, letters()
      local ref = spawn { child = fragile(seen) }
      ref:tell("fail")
      kit():settle()
      for i = 1, 1001 do ref:tell(i) end
      kit():advance(100)

      assert.are.equal(1000, #seen)
      assert.are.same({ "1001 mailbox-full" }, list)
    end)

    it("BOS-1 without that limit while it starts for the first time", function()
      local seen = {}
      local ref = spawn {
        child = { pre_start = function() troupe.sleep(10) end, receive = fragile(seen) },
        stash_capacity = 1,
      }
      kit():settle()
      for _, message in ipairs { "a", "b", "c" } do ref:tell(message) end
      kit():advance(10)

      assert.are.equal(3, #seen)
    end)
  end)

  describe("that is stopped", function()
    it("BOS-1 while its child is away dead-letters what waits, in order, and is gone", function()
      local seen, list = {}, letters()
      local ref = spawn { child = fragile(seen) }
      for _, message in ipairs { "fail", "a", "b" } do ref:tell(message) end
      kit():settle()

      ref:stop()
      kit():settle()

      assert.are.same({ "a stopped", "b stopped" }, list)
      assert.are.equal(0, kit().system:stats().actors)
      assert.are.equal(0, kit().system:stats().timers)
    end)

    it("BOS-1 fails the asks that wait at once", function()
      local ref = spawn { child = fragile({}) }
      ref:tell("fail")
      local answer = kit():async(function() return ref:ask("question") end)

      ref:stop()
      local _, err = answer:await()

      assert.are.equal("ActorStoppedError", err.name)
      assert.are.equal(0, kit():now())
    end)

    it("BOS-1 has its child handle what was told before, when it is not away", function()
      local seen, list = {}, letters()
      local ref = spawn { child = fragile(seen) }
      for _, message in ipairs { "a", "b" } do ref:tell(message) end
      ref:stop()
      ref:tell("late")
      kit():settle()

      assert.are.same({ "a@0", "b@0" }, seen)
      assert.are.same({ "late stopped" }, list)
    end)

    it("BOS-1 does not wait for a child that fails while it handles that", function()
      local seen, list = {}, letters()
      local ref = spawn { child = fragile(seen) }
      for _, message in ipairs { "a", "fail", "b" } do ref:tell(message) end
      ref:stop()
      kit():settle()

      assert.are.same({ "a@0" }, seen)
      assert.are.same({ "b stopped" }, list)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("BOS-1 hard stops its child at once", function()
      local seen = {}
      local parent = kit().system:spawn(function(actor, message)
        if message == "stop" then return actor:stop(actor.children[1]) end
        local ref = actor:spawn(backoff { child = function(_, number)
          troupe.sleep(10)
          seen[#seen + 1] = number
        end })
        for i = 1, 3 do ref:tell(i) end
      end)
      parent:tell("go")
      kit():advance(15)

      parent:tell("stop")
      kit():settle()

      assert.are.same({ 1 }, seen)
      assert.are.equal(1, kit().system:stats().actors)
    end)

    it("BOS-1 by its system lets the child come back within the time for draining", function()
      local seen = {}
      local ref = spawn { child = fragile(seen) }
      kit():settle()
      ref:tell("fail")
      ref:tell("a")

      kit().system:terminate()

      assert.are.same({ "a@100" }, seen)
    end)
  end)

  describe("stops by itself", function()
    it("BOS-1 when its child has stopped without a failure", function()
      local ref = spawn { child = function(actor) actor:stop() end }
      local stopped = watch(ref)

      ref:tell("stop")
      kit():settle()

      assert.are.same({ "sup" }, stopped)
      assert.are.same({}, kit().logs)
    end)

    it("BOS-1 after max_restarts restarts in a row, and says so", function()
      local starts = {}
      local ref = spawn { child = hopeless(starts), max_restarts = 3 }
      local stopped = watch(ref)

      kit():advance(10000)

      assert.are.same({ 0, 100, 300, 700 }, starts)
      assert.are.same({ "sup" }, stopped)
      assert.are.equal("gave up after 4 failures in a row", kit().logs[#kit().logs].message)
      assert.are.equal("error", kit().logs[#kit().logs].level)
    end)

    it("BOS-1 at the first failure when max_restarts is 0", function()
      local starts = {}
      spawn { child = hopeless(starts), max_restarts = 0 }

      kit():advance(1000)

      assert.are.same({ 0 }, starts)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("BOS-1 counting only failures in a row", function()
      local ref = spawn { child = fragile({}), max_restarts = 1 }
      for _ = 1, 5 do
        ref:tell("fail")
        kit():advance(200)
      end

      assert.are.equal(2, kit().system:stats().actors)
    end)
  end)

  it("BOS-1 loses no message and keeps their order, whatever the schedule", function()
    kit():explore(function(fresh)
      local seen = {}
      local ref = fresh.system:spawn(backoff { child = function(_, message)
        if message % 4 == 0 then error("failed", 0) end
        seen[#seen + 1] = message
      end })
      for i = 1, 20 do
        ref:tell(i)
        if i % 3 == 0 then fresh:advance(i) end
      end
      fresh:advance(10000)

      assert.are.same({ 1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19 }, seen)
    end, { seeds = 200 })
  end)

  it("BOS-1 begins anew with a new child when it is restarted itself", function()
    local starts = {}
    local ref = spawn { child = hopeless(starts) }
    kit():advance(350)

    ref:kill()
    kit():advance(100)

    assert.are.same({ 0, 100, 300, 350, 450 }, starts)
  end)

  it("BOS-1 can be the routee of a pool", function()
    local seen = {}
    local pool = kit().system:spawn(troupe.Router.round_robin(2, backoff { child = fragile(seen) }))
    for _, message in ipairs { "fail", "b", "a", "d" } do pool:tell(message) end

    kit():advance(100)

    assert.are.same({ "b@0", "d@0", "a@100" }, seen)
  end)

  it("BOS-1 gives its child the name and the options it was given", function()
    local seen, list = {}, {}
    kit().system.events:subscribe(function(event) list[#list + 1] = event.message end,
      "message_dropped")
    local ref = spawn {
      child = function(actor) seen[#seen + 1] = tostring(actor.path) end,
      child_name = "fetcher",
      child_options = { mailbox = { capacity = 1, overflow = "drop-new" } },
    }
    for i = 1, 3 do ref:tell(i) end
    kit():settle()

    assert.are.same({ "troupe://demo/user/sup/fetcher" }, seen)
    assert.are.same({ 2, 3 }, list)
  end)

  it("BOS-1 refuses another strategy for its child, which could defeat it", function()
    local make = troupe.backoff_supervisor
    local options = {
      child = ignore, min_backoff_ms = 100, max_backoff_ms = 1000,
      child_options = { supervisor_strategy = troupe.stopping_strategy },
    }

    assert.matches("child_options must hold no supervisor_strategy",
      raised_here(function() make(options) end))
  end)

  it("BOS-1 refuses wrong options", function()
    local make = troupe.backoff_supervisor
    local good = { child = ignore, min_backoff_ms = 100, max_backoff_ms = 1000 }

    assert_refused(make, good, "min_backoff_ms", { 0, table.unpack(NONSENSE) })
    assert_refused(make, good, "max_backoff_ms", { 0, 99, table.unpack(NONSENSE) })
    assert_refused(make, good, "random_factor", { 1.1, table.unpack(NONSENSE) })
    assert_refused(make, good, "reset_after_ms", { 0, table.unpack(NONSENSE) })
    assert_refused(make, good, "stash_capacity", { 0, 1.5, table.unpack(NONSENSE) })
    assert_refused(make, good, "max_restarts", { -2, 1.5, table.unpack(NONSENSE, 2) })
    assert_refused(make, good, "child_name", { "", "a/b", "$1", 5 })
    assert_refused(make, good, "child_options", { 5, "none" })
    assert_refused(make, good, "child", { troupe.Router.round_robin(2, ignore) })
    assert.matches("behavior must be", raised_here(function() make { min_backoff_ms = 1,
      max_backoff_ms = 1 } end))
    assert.matches("max_backoff_ms",
      raised_here(function() make { child = ignore, min_backoff_ms = 1 } end))
    assert.matches("min_backoff_ms",
      raised_here(function() make { child = ignore, max_backoff_ms = 1 } end))
    assert.matches("unknown option", raised_here(function() make { kid = ignore } end))
    assert.matches("options must be a table", raised_here(function() make(ignore) end))
  end)
end)

describe("retry", function()
  local kit = new_kit.each(before_each, after_each)

  --- Fails so often, in that way, then gives "found"; lists when it was called, and with what.
  local function flaky(failures, calls, how)
    return function(...)
      calls[#calls + 1] = { kit():now(), ... }
      if #calls > failures then return "found", "at last" end
      if how == "raise" then error("failure " .. #calls, 0) end
      return nil, "failure " .. #calls
    end
  end

  --- Retries in a task, and gives what came of it.
  local function retry(fn, options) return kit():async(troupe.retry, fn, options):await() end

  it("PAT-1 calls once when that succeeds, and gives all that it gave", function()
    local calls = {}

    assert.are.same({ "found", "at last" }, { retry(flaky(0, calls)) })

    assert.are.same({ { 0, 1 } }, calls)
  end)

  for _, how in ipairs { "give", "raise" } do
    it("PAT-1 calls again after a failure, with the number of the attempt: " .. how, function()
      local calls = {}

      assert.are.same({ "found", "at last" },
        { retry(flaky(2, calls, how), { attempts = 5, delay_ms = 10 }) })

      assert.are.same({ { 0, 1 }, { 10, 2 }, { 20, 3 } }, calls)
    end)

    it("PAT-1 gives or raises the last failure: " .. how, function()
      local calls = {}
      local task = kit():async(troupe.retry, flaky(9, calls, how), { attempts = 3, delay_ms = 10 })
      kit():advance(100)

      assert.are.same({ nil, "failure 3" }, { task:await() })
      assert.are.equal(how == "raise" and "failed" or "done", task:status())
      assert.are.equal(3, #calls)
    end)
  end

  it("PAT-1 takes nil without an error for a success, and a value with one too", function()
    local count = 0

    retry(function() count = count + 1 end)
    retry(function()
      count = count + 1
      return false, "not there"
    end)

    assert.are.equal(2, count)
  end)

  it("PAT-1 gives results with nils in them", function()
    local results = table.pack(retry(function() return nil, nil, 3, nil end))

    assert.are.same({ nil, nil, 3, nil, n = 4 }, results)
  end)

  it("PAT-1 lets the delay grow by a factor, up to a bound", function()
    local calls = {}
    retry(flaky(9, calls), { attempts = 6, delay_ms = 10, factor = 3, max_delay_ms = 100 })

    local times = {}
    for i, entry in ipairs(calls) do times[i] = entry[1] end
    assert.are.same({ 0, 10, 40, 130, 230, 330 }, times)
  end)

  it("PAT-1 calls three times by default, half a second apart", function()
    local calls = {}
    retry(flaky(9, calls))

    assert.are.same({ { 0, 1 }, { 500, 2 }, { 1000, 3 } }, calls)
  end)

  it("PAT-1 calls again at once with a delay of 0", function()
    local calls = {}
    retry(flaky(1, calls), { delay_ms = 0 })

    assert.are.same({ { 0, 1 }, { 0, 2 } }, calls)
  end)

  it("PAT-1 works in a handler, and the function may wait", function()
    local tries = 0
    local shy = kit().system:spawn(function(actor)
      tries = tries + 1
      if tries == 3 then actor:reply("hello") end
    end)
    local ref = kit().system:spawn(function(actor)
      actor:reply(troupe.retry(function() return shy:ask("hello", 50) end, { delay_ms = 10 }))
    end)

    assert.are.equal("hello", (ref:ask("go")))
    assert.are.equal(120, kit():now())
  end)

  it("PAT-1 leaves the traceback of what the last attempt raised as it is", function()
    local function raise() error("no disk") end
    kit().system:spawn(function() troupe.retry(raise, { attempts = 1 }) end):tell("go")
    kit():settle()

    local line = debug.getinfo(raise, "S").linedefined
    assert.matches("patterns_spec.lua:" .. line, kit().logs[1].fields.traceback, 1, true)
  end)

  it("PAT-1 calls no more when it is cancelled", function()
    local calls = {}
    local task = kit():async(troupe.retry, flaky(9, calls), { delay_ms = 100 })

    task:cancel()
    local _, err = task:await()

    assert.are.equal("CancelledError", err.name)
    assert.are.equal(1, #calls)
  end)

  it("PAT-1 refuses wrong options", function()
    local retry_options = {
      attempts = { 0, 1.5, table.unpack(NONSENSE) },
      delay_ms = NONSENSE,
      factor = { 0, 0.5, table.unpack(NONSENSE) },
      max_delay_ms = { 0, table.unpack(NONSENSE) },
    }

    for name, values in pairs(retry_options) do
      for _, value in ipairs(values) do
        local why = raised_here(function() troupe.retry(ignore, { [name] = value }) end)
        assert.matches(name .. " must be ", why, 1, true)
      end
    end
    assert.matches("unknown option", raised_here(function() troupe.retry(ignore, { n = 1 }) end))
  end)

  it("PAT-1 refuses what is no function, and to be called outside handlers and tasks", function()
    assert.matches("fn must be a function", raised_here(function() troupe.retry(42) end))
    assert.matches("retry: to be called in a handler or a task",
      raised_here(function() troupe.retry(ignore) end))
  end)
end)

describe("pipe_to_self", function()
  local kit = new_kit.each(before_each, after_each)

  --- An actor that pipes to itself on "go", and lists what else it is told.
  local function spawn(seen, fn, mapper)
    return kit().system:spawn(function(actor, message)
      if message == "go" then
        actor:pipe_to_self(fn, mapper)
      elseif message == "fail" then
        error("failed", 0)
      else
        seen[#seen + 1] = message
      end
    end)
  end

  local function piped(fn, mapper)
    local seen = {}
    spawn(seen, fn, mapper):tell("go")
    kit():advance(100)
    return seen
  end

  it("PAT-1 tells the actor what the function gave", function()
    assert.are.same({ { value = "found" } }, piped(function() return "found", "at once" end))
    assert.are.same({ {} }, piped(function() end))
    assert.are.same({ { value = false } }, piped(function() return false, "not there" end))
  end)

  it("PAT-1 tells the actor that it failed, by error or by raising", function()
    local reason = { "reason" }

    assert.are.same({ { err = "broken" } }, piped(function() return nil, "broken" end))
    assert.is_true(rawequal(reason, piped(function() error(reason) end)[1].err))
    assert.are.same({ { err = "(error object is a nil value)" } }, piped(function() error() end))
  end)

  it("PAT-1 runs the function while the actor handles other mail", function()
    local seen = {}
    local ref = spawn(seen, function()
      troupe.sleep(50)
      return "found"
    end)
    ref:tell("go")
    kit():settle()
    ref:tell("mail")
    kit():advance(50)

    assert.are.same({ "mail", { value = "found" } }, seen)
  end)

  it("PAT-1 has a mapper make the message", function()
    local function mapper(value, err) return ("%s, %s"):format(value, err) end

    assert.are.same({ "found, nil" }, piped(function() return "found", "at once" end, mapper))
    assert.are.same({ "nil, broken" }, piped(function() error("broken", 0) end, mapper))
  end)

  it("PAT-1 logs a mapper that raises", function()
    assert.are.same({}, piped(ignore, function() error("bad mapper", 0) end))

    assert.are.equal("a task failed: bad mapper", kit().logs[1].message)
  end)

  it("PAT-1 tells without a sender", function()
    local sender = "unset"
    kit().system:spawn(function(actor, message)
      if message == "go" then return actor:pipe_to_self(ignore) end
      sender = actor.sender
    end):tell("go", kit().system:spawn(ignore))
    kit():settle()

    assert.is_nil(sender)
  end)

  it("PAT-1 tells nothing to a later incarnation", function()
    local seen = {}
    local ref = spawn(seen, function() troupe.sleep(50) end)
    ref:tell("go")
    ref:tell("fail")
    kit():advance(50)

    assert.are.same({}, seen)
  end)

  it("PAT-1 takes back a message that is queued when the actor restarts", function()
    local seen = {}
    local ref = kit().system:spawn(function(actor, message)
      if message == "go" then
        actor:pipe_to_self(ignore)
        troupe.sleep(10)
        error("failed", 0)
      end
      seen[#seen + 1] = message
    end)
    ref:tell("go")
    kit():advance(10)

    assert.are.same({}, seen)
  end)

  it("PAT-1 is silent when the actor has stopped", function()
    local list = {}
    kit().system.events:subscribe(function(event) list[#list + 1] = event end, "dead_letter")
    local ref = spawn({}, function() troupe.sleep(50) end)
    ref:tell("go")
    ref:stop()
    kit():advance(50)

    assert.are.same({}, list)
    assert.are.same({}, kit().logs)
  end)

  it("PAT-1 is not undone when the actor cancels its timers", function()
    local seen = {}
    kit().system:spawn(function(actor, message)
      if message == "go" then
        actor:pipe_to_self(function() return "found" end)
        troupe.sleep(10)
        actor.timers:cancel_all()
      else
        seen[#seen + 1] = message
      end
    end):tell("go")
    kit():advance(10)

    assert.are.same({ { value = "found" } }, seen)
  end)

  it("PAT-1 does not fail an actor that drains", function()
    local called = false
    spawn({}, function() called = true end):tell("go")

    kit().system:terminate()

    assert.is_true(called)
    assert.are.same({}, kit().logs)
  end)

  it("PAT-1 refuses what is no function", function()
    local ref = kit().system:spawn(function(actor)
      assert.matches("the function must be a function",
        raised_here(function() actor:pipe_to_self("fetch") end))
      assert.matches("the mapper must be a function",
        raised_here(function() actor:pipe_to_self(ignore, "mapper") end))
      actor:reply("checked")
    end)

    assert.are.equal("checked", (ref:ask("go")))
  end)
end)
