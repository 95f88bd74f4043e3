local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("receive timeout", function()
  local kit = new_kit.each(before_each, after_each)

  -- An actor that sets a timeout when it starts, and notes when it gets what.
  local function idler(ms, seen, receive)
    return kit().system:spawn({
      pre_start = function(actor) actor:set_receive_timeout(ms) end,
      receive = function(actor, message)
        seen[#seen + 1] = ("%s at %g"):format(message, kit():now())
        if receive then receive(actor, message) end
      end,
    }, "idler")
  end

  it("TMR-7 tells an actor that it had no mail for that long, again and again", function()
    local seen = {}
    idler(100, seen)

    kit():advance(299)

    assert.are.same({ "troupe.ReceiveTimeout at 100", "troupe.ReceiveTimeout at 200" }, seen)
  end)

  it("WATCH-6 is told from other messages by troupe.is", function()
    local seen = {}
    idler(100, {}, function(_, message)
      seen[#seen + 1] = troupe.is(message, troupe.ReceiveTimeout)
      seen[#seen + 1] = troupe.is(message, troupe.Terminated)
    end):tell({})

    kit():advance(100)

    assert.are.same({ false, false, true, false }, seen)
  end)

  it("TMR-7 counts anew from the end of a user message", function()
    local seen = {}
    local ref = idler(100, seen, function(_, message)
      if message == "work" then troupe.sleep(70) end
    end)
    kit():advance(60)

    ref:tell("work")
    kit():advance(169)
    assert.are.same({ "work at 60" }, seen)
    kit():advance(1)

    assert.are.same({ "work at 60", "troupe.ReceiveTimeout at 230" }, seen)
  end)

  it("TMR-7 is not put off by timers and death notices", function()
    local seen = {}
    local target = kit().system:spawn(function() end, "target")
    kit().system:spawn({
      pre_start = function(actor)
        actor:set_receive_timeout(100)
        actor.timers:start_fixed_rate("tick", "tick", 40)
        actor:watch(target)
      end,
      receive = function(_, message)
        local what = troupe.is(message, troupe.Terminated) and "death" or tostring(message)
        seen[#seen + 1] = ("%s at %g"):format(what, kit():now())
      end,
    })
    kit():advance(60)

    target:stop()
    kit():advance(40)

    assert.are.same({ "tick at 40", "death at 60", "tick at 80", "troupe.ReceiveTimeout at 100" },
      seen)
  end)

  it("TMR-7 is off after nil", function()
    local seen = {}
    local ref = idler(100, seen, function(actor, message)
      if message == "off" then actor:set_receive_timeout(nil) end
    end)

    ref:tell("off")
    kit():advance(1000)

    assert.are.same({ "off at 0" }, seen)
    assert.are.equal(0, kit().system:stats().timers)
  end)

  it("TMR-7 takes the latest setting, also from its own message", function()
    local seen = {}
    idler(100, seen, function(actor) actor:set_receive_timeout(30) end)

    kit():advance(160)

    assert.are.same({
      "troupe.ReceiveTimeout at 100",
      "troupe.ReceiveTimeout at 130",
      "troupe.ReceiveTimeout at 160",
    }, seen)
  end)

  it("TMR-7 ends with the incarnation", function()
    local seen = {}
    local ref = kit().system:spawn(function(actor, message)
      seen[#seen + 1] = message
      if message == "set" then actor:set_receive_timeout(10) end
      if message == "fail" then error("restart") end
    end)
    ref:tell("set")
    ref:tell("fail")

    kit():advance(1000)

    assert.are.same({ "set", "fail" }, seen)
    assert.are.equal(0, kit().system:stats().timers)
  end)

  it("LIFE-4 a restart takes back a receive timeout that is queued", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor)
        actor:set_receive_timeout(10)
        actor.timers:start_single("busy", "busy", 5)
      end,
      post_restart = function() end,
      receive = function(_, message)
        seen[#seen + 1] = message
        troupe.sleep(20)
      end,
    })
    kit():advance(15)

    ref:kill()
    kit():advance(100)

    assert.are.same({ "busy" }, seen)
  end)

  it("TMR-7 goes on when a failed actor is resumed", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor) actor:set_receive_timeout(100) end,
      receive = function(_, message)
        if message == "fail" then error("fail") end
        seen[#seen + 1] = kit():now()
      end,
    }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
    kit():advance(50)

    ref:tell("fail")
    kit():advance(100)

    assert.are.same({ 150 }, seen)
  end)

  it("TMR-7 is not told to an actor that has mail waiting", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor)
        actor:set_receive_timeout(100)
        actor.timers:start_single("busy", "busy", 50)
      end,
      receive = function(_, message)
        seen[#seen + 1] = tostring(message)
        if message == "busy" then troupe.sleep(200) end
      end,
    })
    kit():advance(60)
    ref:tell("mail")

    kit():advance(200)

    assert.are.same({ "busy", "mail" }, seen)
  end)

  it("TMR-7 can be stashed like any message, and is no dead letter", function()
    local seen, letters = {}, {}
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    local ref = idler(10, seen, function(actor, message)
      if message == "open" then
        actor:unstash_all()
        actor:set_receive_timeout(nil)
      elseif #seen < 3 then
        actor:stash()
      end
    end)
    kit():advance(10)
    ref:tell("open")
    kit():settle()

    assert.are.same({ "troupe.ReceiveTimeout at 10", "open at 10", "troupe.ReceiveTimeout at 10" },
      seen)
    assert.are.same({}, letters)
  end)

  it("TMR-7 raises for what is no positive finite number", function()
    local errors = {}
    idler(100, {}, function(actor)
      for _, ms in ipairs { 0, -1, 0 / 0, math.huge, "3", {} } do
        local _, err = pcall(actor.set_receive_timeout, actor, ms)
        errors[#errors + 1] = tostring(err)
      end
    end):tell("go")
    kit():settle()

    assert.are.equal(6, #errors)
    for _, err in ipairs(errors) do
      assert.matches("set_receive_timeout: ms must be a positive finite number", err)
    end
  end)

  it("TMR-7 does not call an actor that waits in its own mail idle", function()
    local seen = {}
    local ref = idler(10, seen, function(_, message)
      if message == "long" then troupe.sleep(100) end
    end)
    ref:tell("long")

    kit():advance(105)

    assert.are.same({ "long at 0" }, seen)
  end)
end)
