local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("errors in use", function()
  local kit = new_kit.each(before_each, after_each)
  local Router = troupe.Router

  local function noop() end

  -- `wrong` is a function of one line; what it raises must begin with that line.
  local function assert_raises_here(wrong, why)
    local ok, raised = pcall(wrong)
    assert.is_false(ok)
    local message = troupe.is_error(raised) and raised.message or raised
    local info = debug.getinfo(wrong, "S")
    local here = info.short_src .. ":" .. info.linedefined .. ": "
    assert.equal(here, message:sub(1, #here))
    assert.matches(why, message, 1, true)
  end

  it("ERR-2 troupe.system raises at the caller's line", function()
    assert_raises_here(function() troupe.system() end, "name")
    assert_raises_here(function() troupe.system(42) end, "42")
    assert_raises_here(function() troupe.system("two words") end, "two words")
    assert_raises_here(function() troupe.system("demo", 42) end, "options")
    assert_raises_here(function() troupe.system("demo", { throughput = 0 }) end, "throughput")
    assert_raises_here(function() troupe.system("demo", { trouphput = 1 }) end, "trouphput")
  end)

  it("ERR-2 system:spawn raises at the caller's line", function()
    local system = kit().system
    assert_raises_here(function() system:spawn() end, "behavior")
    assert_raises_here(function() system:spawn(42) end, "42")
    assert_raises_here(function() system:spawn({ recieve = noop }) end, "recieve")
    assert_raises_here(function() system:spawn(noop, "a/b") end, "a/b")
    assert_raises_here(function() system:spawn(noop, {}) end, "name")
    assert_raises_here(function() system:spawn(noop, "worker", 42) end, "options")
    assert_raises_here(function() system:spawn(noop, nil, { mialbox = 1 }) end, "mialbox")
    assert.equal(0, system:stats().actors)
  end)

  it("ERR-2 system:spawn raises at the caller's line when the name is taken", function()
    local system = kit().system
    system:spawn(noop, "worker")
    assert_raises_here(function() system:spawn(noop, "worker") end, "troupe://demo/user/worker")
  end)

  it("ERR-2 actor:spawn raises at the caller's line, in a handler", function()
    local ref = kit().system:spawn(function(actor)
      assert_raises_here(function() actor:spawn(42) end, "42")
      assert_raises_here(function() actor:spawn(noop, "a/b") end, "a/b")
      actor:reply("checked")
    end)
    assert.equal("checked", (ref:ask("go")))
  end)

  it("ERR-2 ref:ask raises at the caller's line when the timeout is wrong", function()
    local ref = kit().system:spawn(noop)
    assert_raises_here(function() ref:ask("hello", 0) end, "timeout")
    assert_raises_here(function() ref:ask("hello", -1) end, "-1")
    assert_raises_here(function() ref:ask("hello", 1 / 0) end, "inf")
    assert_raises_here(function() ref:ask("hello", "soon") end, "string")
  end)

  it("ERR-2 ref:ask raises at the caller's line, in a handler and in a task", function()
    local target = kit().system:spawn(noop)
    local ref = kit().system:spawn(function(actor)
      assert_raises_here(function() target:ask("hello", 0) end, "timeout")
      actor:reply("checked")
    end)
    assert.equal("checked", (ref:ask("go")))
    kit().system:go(function()
      assert_raises_here(function() target:ask("hello", 0) end, "timeout")
    end):await()
  end)

  it("ERR-2 an ask where one cannot ask raises at the caller's line", function()
    local target = kit().system:spawn(noop)
    local ref = kit().system:spawn(function(actor)
      local nested = coroutine.wrap(assert_raises_here)
      nested(function() target:ask("hello") end, "coroutine")
      actor:reply("checked")
    end)
    assert.equal("checked", (ref:ask("go")))
  end)

  it("ERR-2 methods of a ref raise at the caller's line when self is no ref", function()
    local ref = kit().system:spawn(noop)
    assert_raises_here(function() ref.tell(nil, 1) end, "tell")
    assert_raises_here(function() ref.tell({}, 1) end, "tell")
    assert_raises_here(function() ref.tell(io.stdout, 1) end, "tell")
    assert_raises_here(function() ref.ask("ref", 1) end, "ask")
    assert_raises_here(function() ref.stop() end, "stop")
  end)

  it("ERR-2 ref:tell raises at the caller's line when the sender is no ref", function()
    local ref = kit().system:spawn(noop)
    assert_raises_here(function() ref:tell("hello", "me") end, "sender")
    assert_raises_here(function() ref:tell("hello", {}) end, "sender")
  end)

  it("ERR-2 timers raise at the caller's line when a delay is wrong", function()
    local ref = kit().system:spawn(function(actor)
      local timers = actor.timers
      assert_raises_here(function() timers:start_single("key", "m", -1) end, "delay")
      assert_raises_here(function() timers:start_single("key", "m", "soon") end, "soon")
      assert_raises_here(function() timers:start_single("key", "m") end, "delay")
      assert_raises_here(function() timers:start_single(nil, "m", 1) end, "key")
      assert_raises_here(function() timers:start_fixed_delay("key", "m", 0) end, "interval")
      assert_raises_here(function() timers:start_fixed_rate("key", "m", 0) end, "interval")
      assert_raises_here(function() timers:start_fixed_rate("key", "m", 1, -1) end, "initial")
      actor:reply("checked")
    end)
    assert.equal("checked", (ref:ask("go")))
  end)

  it("ERR-2 schedule_once and schedule_every raise at the caller's line", function()
    local system = kit().system
    assert_raises_here(function() system:schedule_once(-1, noop) end, "delay")
    assert_raises_here(function() system:schedule_once("soon", noop) end, "soon")
    assert_raises_here(function() system:schedule_once(1, 42) end, "42")
    assert_raises_here(function() system:schedule_every(0, noop) end, "interval")
    assert_raises_here(function() system:schedule_every(1) end, "function")
  end)

  it("ERR-2 system:go, task:await and troupe.sleep raise at the caller's line", function()
    local system = kit().system
    local task = system:go(noop)
    assert_raises_here(function() system:go(42) end, "function")
    assert_raises_here(function() task:await(-1) end, "timeout")
    assert_raises_here(function() troupe.sleep(10) end, "sleep")
    system:go(function()
      assert_raises_here(function() troupe.sleep(-1) end, "-1")
    end):await()
  end)

  for _, factory in ipairs {
    "round_robin", "random", "broadcast", "smallest_mailbox", "scatter_gather_first_completed",
  } do
    it("ERR-2 Router." .. factory .. " raises at the caller's line", function()
      local make = Router[factory]
      assert_raises_here(function() make(0, noop) end, "size must be an integer from 1 to 1000000")
      assert_raises_here(function() make(1.5, noop) end, "got 1.5")
      assert_raises_here(function() make("3", noop) end, "size")
      assert_raises_here(function() make(3) end, "behavior")
      assert_raises_here(function() make(3, 42) end, "42")
      assert_raises_here(function() make(3, noop, 42) end, "options")
      assert_raises_here(function() make(3, noop, { size = 3 }) end, "size")
    end)
  end

  it("ERR-2 Router.custom raises at the caller's line", function()
    assert_raises_here(function() Router.custom(0, noop, noop) end, "size")
    assert_raises_here(function() Router.custom(3, 42, noop) end, "42")
    assert_raises_here(function() Router.custom(3, noop) end, "strategy")
    assert_raises_here(function() Router.custom(3, noop, "first") end, "first")
  end)

  it("ERR-2 a scatter's timeout is checked in the factory call", function()
    local scatter = Router.scatter_gather_first_completed
    assert_raises_here(function() scatter(3, noop, { timeout_ms = 0 }) end, "timeout_ms")
    assert_raises_here(function() scatter(3, noop, { timeout_ms = 0 / 0 }) end, "timeout_ms")
    assert_raises_here(function() scatter(3, noop, { timeout_ms = 1 / 0 }) end, "timeout_ms")
  end)

  it("ERR-2 actor_selection raises at the caller's line", function()
    local system = kit().system
    assert_raises_here(function() system:actor_selection() end, "path")
    assert_raises_here(function() system:actor_selection(42) end, "42")
    assert_raises_here(function() system:actor_selection("user/a") end, "user/a")
  end)

  it("ERR-2 strategies raise at the caller's line", function()
    local one_for_one = troupe.one_for_one
    assert_raises_here(function() one_for_one { decider = "retry" } end, "retry")
    assert_raises_here(function() one_for_one { max_restarts = -2 } end, "max_restarts")
    assert_raises_here(function() one_for_one { within_ms = 0 / 0 } end, "within_ms")
    assert_raises_here(function() one_for_one { max_restart = 3 } end, "max_restart")
  end)

  it("ERR-2 actor:fail raises at the caller's line when the error is nil", function()
    local ref = kit().system:spawn(function(actor)
      assert_raises_here(function() actor:fail(nil) end, "fail")
      actor:reply("checked")
    end)
    assert.equal("checked", (ref:ask("go")))
  end)

  it("ERR-2 gives nil and an error for what can be expected to fail", function()
    local silent = kit().system:spawn(noop)
    local stopped = kit().system:spawn(noop)
    stopped:stop()

    local _, timed_out = silent:ask("hello", 10)
    local _, gone = stopped:ask("hello", 10)
    local _, cut_short = kit().system:go(function() troupe.sleep(100) end):await(10)

    assert.equal("AskTimeoutError", timed_out.name)
    assert.equal("ActorStoppedError", gone.name)
    assert.equal("TimeoutError", cut_short.name)
  end)
end)
