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
