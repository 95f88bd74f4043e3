local troupe = require "troupe"
local new_kit = require "spec.support.kit"

local function ignore() end

describe("dead letters", function()
  local kit = new_kit.each(before_each, after_each)

  --- The ref of an actor that has stopped.
  local function dead_ref()
    local ref = kit().system:spawn(ignore, "dead")
    ref:stop()
    kit():settle()
    return ref
  end

  --- A list that gets every dead letter from now on.
  local function letters()
    local list = {}
    kit().system.events:subscribe(function(event) list[#list + 1] = event end, "dead_letter")
    return list
  end

  it("DL-1 publishes message, sender, recipient and reason", function()
    local message = { "message" }
    local sender = kit().system:spawn(ignore)
    local dead, list = dead_ref(), letters()

    dead:tell(message, sender)
    kit():settle()

    assert.are.equal(1, #list)
    assert.are.equal("dead_letter", list[1].kind)
    assert.is_true(rawequal(message, list[1].message))
    assert.are.equal(sender, list[1].sender)
    assert.are.equal("troupe://demo/user/dead", list[1].recipient)
    assert.are.equal("stopped", list[1].reason)
  end)

  it("DL-1 publishes no sender when there is none", function()
    local dead, list = dead_ref(), letters()

    dead:tell("message")
    kit():settle()

    assert.are.equal(1, #list)
    assert.is_nil(list[1].sender)
  end)

  it("DL-1 gives stopped as the reason for the mail that a stop leaves", function()
    local list = letters()
    local ref = kit().system:spawn(function(actor) actor:stop() end, "quits")
    ref:tell("handled")
    ref:tell("left")
    kit():settle()

    assert.are.equal(1, #list)
    assert.are.equal("left", list[1].message)
    assert.are.equal("troupe://demo/user/quits", list[1].recipient)
    assert.are.equal("stopped", list[1].reason)
  end)

  it("DL-1 gives unresolved as the reason when a selection finds nobody", function()
    local list = letters()

    kit().system:actor_selection("/user/nobody"):tell("message")
    kit():settle()

    assert.are.equal(1, #list)
    assert.are.equal("message", list[1].message)
    assert.are.equal("troupe://demo/user/nobody", list[1].recipient)
    assert.are.equal("unresolved", list[1].reason)
  end)

  it("DL-1 gives system-terminated as the reason after the end of the system", function()
    local list = letters()
    local ref = kit().system:spawn(ignore)
    kit().system:terminate()

    ref:tell("message")
    kit():settle()

    assert.are.equal(1, #list)
    assert.are.equal("system-terminated", list[1].reason)
  end)

  it("DL-2 logs at info, with the path", function()
    local dead = dead_ref()

    dead:tell("message")
    kit():settle()

    assert.are.equal(1, #kit().logs)
    local record = kit().logs[1]
    assert.are.equal("info", record.level)
    assert.are.equal("troupe://demo/user/dead", tostring(record.path))
  end)

  it("DL-2 logs ten lines in ten seconds, then one with the count", function()
    local dead, list = dead_ref(), letters()
    for i = 1, 25 do dead:tell(i) end
    kit():settle()
    assert.are.equal(10, #kit().logs)
    assert.are.equal(25, #list)

    kit():advance(10000)
    dead:tell("next")
    kit():settle()

    assert.are.equal(12, #kit().logs)
    assert.matches("15", kit().logs[11].message)
    assert.are.equal("info", kit().logs[11].level)
  end)

  it("DL-2 logs the count when the ten seconds are over, whether more come or not", function()
    local dead = dead_ref()
    for i = 1, 25 do dead:tell(i) end
    kit():advance(9999)
    assert.are.equal(10, #kit().logs)

    kit():advance(1)

    assert.are.equal(11, #kit().logs)
    assert.matches("15 more dead letters", kit().logs[11].message)
  end)

  it("DL-2 holds no system up for the count, which comes when it comes to rest", function()
    local dead = dead_ref()
    for i = 1, 25 do dead:tell(i) end

    kit().system:run()

    assert.are.equal(0, kit():now())
    assert.matches("15 more dead letters", kit().logs[11].message)
  end)

  it("DL-2 logs fully again in the next ten seconds, without a count of nothing", function()
    local dead = dead_ref()
    for i = 1, 10 do dead:tell(i) end
    kit():advance(10000)
    for i = 1, 10 do dead:tell(i) end
    kit():settle()

    assert.are.equal(20, #kit().logs)
  end)

  it("DL-3 drops a dead letter about a dead letter", function()
    local dead, list = dead_ref(), letters()
    kit().system.events:subscribe(function(event)
      if #list < 10 then dead:tell(event) end
    end, "dead_letter")

    dead:tell("message")
    kit():settle()

    assert.are.equal(1, #list)
  end)

  it("DL-3 drops it when it is told to a selection of nobody, too", function()
    local list = letters()
    local nobody = kit().system:actor_selection("/user/nobody")
    kit().system.events:subscribe(function(event)
      if #list < 10 then nobody:tell(event) end
    end, "dead_letter")

    nobody:tell("message")

    assert.are.equal(1, #list)
  end)

  it("DL-3 drops it when an actor sends it on, too", function()
    local dead, list = dead_ref(), letters()
    kit().system.events:subscribe(kit().system:spawn(function(_, event)
      if #list < 10 then dead:tell(event) end
    end), "dead_letter")

    dead:tell("message")
    kit():settle()

    assert.are.equal(1, #list)
  end)

  it("DL-3 cannot loop when a subscriber has stopped with letters in its mailbox", function()
    local system = kit().system
    local dead, list = dead_ref(), letters()
    local subscriber = system:spawn(function(actor) actor:stop() end)
    system.events:subscribe(subscriber, "dead_letter")
    for i = 1, 5 do dead:tell(i) end
    kit():settle()
    assert.are.equal(0, system:stats().actors)

    dead:tell(6)
    kit():settle()

    assert.are.equal(6, #list)
    assert.are.equal(0, system:stats().queued)
  end)

  it("DL-3 goes on when a subscriber raises", function()
    local dead = dead_ref()
    kit().system.events:subscribe(function() error("bad subscriber") end, "dead_letter")
    local list = letters()

    dead:tell("a")
    dead:tell("b")
    kit():settle()

    assert.are.equal(2, #list)
  end)

  it("DL-4 makes no dead letter of a late reply to an ask", function()
    local list = letters()
    local slow = kit().system:spawn(function(actor)
      troupe.sleep(100)
      actor:reply("late")
    end)
    local answer = kit():async(function() return slow:ask("quick", 50) end)
    kit():advance(200)

    local _, err = answer:await()
    assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    assert.are.equal(0, #list)
  end)

  it("DL-4 makes no dead letter of a second reply", function()
    local list = letters()
    local ref = kit().system:spawn(function(actor)
      actor:reply(1)
      actor:reply(2)
    end)

    assert.are.equal(1, (ref:ask("count")))
    kit():settle()

    assert.are.equal(0, #list)
  end)

  it("DL-4 makes no dead letter of a request whose asker is told of the stop", function()
    local list = letters()
    local ref = kit().system:spawn(function(actor)
      troupe.sleep(10)
      actor:stop()
    end)
    ref:tell("stop")
    local queued = kit():async(function() return ref:ask("queued") end)
    kit():advance(10)
    local late = kit():async(function() return ref:ask("late") end)
    kit():settle()

    for _, task in ipairs { queued, late } do
      local _, err = task:await()
      assert.is_true(troupe.is_error(err, "ActorStoppedError"))
    end
    assert.are.equal(0, #list)
  end)

  it("DL-4 makes no dead letter of the timer messages of an actor that stopped", function()
    local list = letters()
    local ref = kit().system:spawn({
      pre_start = function(actor)
        actor.timers:start_single("once", "tick", 10)
        actor.timers:start_fixed_rate("again", "tick", 10)
      end,
      receive = function(actor)
        troupe.sleep(100)
        actor:stop()
      end,
    })
    ref:tell("stop")
    kit():advance(1000)

    assert.are.equal(0, kit().system:stats().actors)
    assert.are.equal(0, #list)
  end)

  it("DL-4 makes no dead letter of the replies that lose a scatter", function()
    local list = letters()
    local pool = kit().system:spawn(
      troupe.Router.scatter_gather_first_completed(3, function(actor)
        actor:reply(actor.name)
      end), "pool")

    pool:ask("race")
    kit():settle()

    assert.are.equal(0, #list)
  end)

  it("DL-4 makes no dead letter of a message that a strategy gives to nobody", function()
    local list = letters()
    local pool = kit().system:spawn(
      troupe.Router.custom(2, ignore, function() return {} end), "pool")

    pool:tell("for nobody")
    kit():settle()

    assert.are.equal(0, #list)
  end)
end)
