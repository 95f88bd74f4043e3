local troupe = require "troupe"
local events = require "troupe.events"
local log = require "troupe.log"
local reports = require "troupe.reports"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

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

  it("DL-2 begins another ten seconds when the clock of the log has been set back", function()
    local now, lines = 1000, {}
    local own = log.new("troupe://demo/", function() return now end, {
      sink = function(record) lines[#lines + 1] = record.message end,
    })
    local stream = events.new { is_ref = function() return false end }
    local dispatch = reports.dispatcher(own, stream, function() end)
    local function lose(n)
      for _ = 1, n do dispatch("dead_letter", nil, "m", "unresolved", nil, "/user/a") end
    end
    lose(25)
    assert.are.equal(10, #lines)

    now = 500
    lose(2)

    assert.are.equal("15 more dead letters", lines[11])
    assert.are.equal(13, #lines)
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
    kit():settle()

    assert.are.equal(1, #list)
  end)

  it("DL-1 tells subscribers one after another, whatever they tell to nobody meanwhile", function()
    local nobody = kit().system:actor_selection("/user/nobody")
    local told = 0
    for _ = 1, 2 do
      kit().system.events:subscribe(function(event)
        told = told + 1
        if told < 10000 then nobody:tell(event.message) end
      end, "dead_letter")
    end

    nobody:tell("message")
    kit():settle()

    assert.are.equal(20000, told)
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

  describe("that are kept", function()
    local function keep(n) return kit({ dead_letters = { keep = n } }).system.dead_letters end

    --- Makes a dead letter of each message: "a1" is for the actor "a", which has stopped.
    local function lose(messages)
      for _, message in ipairs(messages) do
        local ref = kit().system:spawn(ignore, message:match("%a+"))
        ref:stop()
        kit():settle()
        ref:tell(message)
      end
      kit():settle()
    end

    local function messages_of(list)
      local messages = {}
      for i, letter in ipairs(list) do messages[i] = letter.message end
      return messages
    end

    it("DL-5 are listed with what is known of them", function()
      local kept = keep(10)
      local message, sender = { "message" }, kit().system:spawn(ignore)
      local dead = dead_ref()
      kit():advance(1500)

      dead:tell(message, sender)
      kit():settle()

      local letter = kept:list()[1]
      assert.is_true(rawequal(message, letter.message))
      assert.are.equal(sender, letter.sender)
      assert.are.equal("troupe://demo/user/dead", letter.recipient)
      assert.are.equal("stopped", letter.reason)
      assert.are.equal(1.5, letter.time)
    end)

    it("DL-5 are the last n, the oldest first", function()
      local kept = keep(3)
      lose { "a1", "a2" }
      assert.are.same({ "a1", "a2" }, messages_of(kept:list()))
      assert.are.equal(2, kept:count())

      lose { "a3", "a4", "a5", "a6", "a7", "a8" }

      assert.are.same({ "a6", "a7", "a8" }, messages_of(kept:list()))
      assert.are.equal(3, kept:count())
    end)

    it("DL-5 are let go of when later ones come, or when they are cleared", function()
      local kept = keep(2)
      local dead = dead_ref()
      local messages = setmetatable({}, { __mode = "v" })
      local function tell(i)
        messages[i] = {}
        dead:tell(messages[i])
        kit():settle()
      end
      for i = 1, 3 do tell(i) end
      collectgarbage()
      assert.is_nil(messages[1])
      assert.is_not_nil(messages[2])

      kept:clear()
      collectgarbage()

      assert.are.same({}, messages)
      assert.are.equal(0, kept:count())
      tell(4)
      assert.are.equal(1, #kept:list())
    end)

    it("DL-5 are found by path, exact or with wildcards, and by reason", function()
      local kept = keep(10)
      lose { "a1", "ab2", "b3" }
      kit().system:actor_selection("/user/a/deeper"):tell("nobody")
      kit():settle()
      local function found(filter) return messages_of(kept:list(filter)) end

      assert.are.same({ "a1" }, found { path = "/user/a" })
      assert.are.same({ "a1" }, found { path = "troupe://demo/user/a" })
      assert.are.same({ "a1", "ab2" }, found { path = "/user/a*" })
      assert.are.same({ "nobody" }, found { path = "/user/*/*" })
      assert.are.same({}, found { path = "/user" })
      assert.are.same({ "nobody" }, found { reason = "unresolved" })
      assert.are.same({ "a1", "b3" }, found { path = "/user/?", reason = "stopped" })
      assert.are.same({}, found { path = "/user/a", reason = "unresolved" })
    end)

    it("DL-5 are as many as wanted, the latest", function()
      local kept = keep(10)
      lose { "a1", "b2", "a3", "a4" }

      assert.are.same({ "a3", "a4" }, messages_of(kept:list { limit = 2 }))
      assert.are.same({ "a1", "a3", "a4" }, messages_of(kept:list { path = "/user/a", limit = 3 }))
      assert.are.same({ "b2" }, messages_of(kept:list { path = "/user/b", limit = 3 }))
    end)

    it("DL-5 are not changed by who changes the list", function()
      local kept = keep(10)
      lose { "a1", "a2" }

      local list = kept:list()
      list[1].message, list[2] = "changed", nil

      assert.are.same({ "a1", "a2" }, messages_of(kept:list()))
    end)

    it("DL-5 are told again, with their senders, to whoever is there now", function()
      local kept = keep(10)
      lose { "a1" }
      local sender = kit():probe()
      kit().system:actor_selection("/user/c"):tell("c2", sender.ref)
      kit():settle()
      local a, c = kit():probe("a"), kit():probe("c")

      assert.are.equal(2, kept:replay())

      a:expect("a1")
      assert.is_nil(a.last_sender)
      c:expect("c2")
      assert.are.equal(sender.ref, c.last_sender)
      assert.are.equal(0, kept:replay())
    end)

    it("DL-5 are told again in order, and leave the others in order", function()
      local kept = keep(5)
      lose { "b0", "b1", "a1", "b2", "a2", "b3", "a3" }
      local a, b = kit():probe("a"), kit():probe("b")

      assert.are.equal(2, kept:replay { path = "/user/a", limit = 2 })
      assert.are.same({ "a2", "a3" }, a:receive_n(2))
      assert.are.same({ "a1", "b2", "b3" }, messages_of(kept:list()))
      lose { "c1", "c2", "c3" }
      assert.are.same({ "b2", "b3", "c1", "c2", "c3" }, messages_of(kept:list()))

      assert.are.equal(2, kept:replay { path = "/user/?", reason = "stopped", limit = 5 })
      assert.are.same({ "b2", "b3" }, b:receive_n(2))
    end)

    it("DL-5 are told again to all that a selection selects", function()
      local kept = keep(10)
      kit().system:actor_selection("/user/w*"):tell("for all")
      kit():settle()
      local probes = { kit():probe("w1"), kit():probe("w2"), kit():probe("other") }

      assert.are.equal(1, kept:replay())

      probes[1]:expect("for all")
      probes[2]:expect("for all")
      probes[3]:expect_none(1)
    end)

    it("DL-5 are dead letters once more when nobody is there, or when it is full", function()
      local kept = keep(10)
      lose { "a1", "full2" }
      local system = kit().system
      local full =
        system:spawn(ignore, "full", { mailbox = { capacity = 1, overflow = "reject" } })
      local sender = system:spawn(ignore)
      system:actor_selection("/user/nobody"):tell("nobody3", sender)
      kit():settle()
      full:tell("fill")
      local list = letters()

      assert.are.equal(0, kept:replay())
      kit():settle()

      assert.are.same({ "a1", "full2", "nobody3" }, messages_of(list))
      assert.are.equal(sender, list[3].sender)
      assert.are.equal("unresolved", list[1].reason)
      assert.are.equal("troupe://demo/user/a", list[1].recipient)
      assert.are.equal("mailbox-full", list[2].reason)
      assert.are.equal("troupe://demo/user/full", list[2].recipient)
      assert.are.same({ "a1", "full2", "nobody3" }, messages_of(kept:list()))
    end)

    it("DL-5 are dead letters once more when their actor is stopping", function()
      local kept = keep(10)
      lose { "a1" }
      local ref = kit().system:spawn({
        receive = ignore,
        post_stop = function() troupe.sleep(100) end,
      }, "a")
      ref:stop()
      kit():settle()

      kept:replay()
      kit():settle()

      assert.are.same({ "a1" }, messages_of(kept:list { reason = "stopped" }))
    end)

    it("DL-5 cannot be told again by a subscriber, which might never end", function()
      local kept = keep(10)
      lose { "a1" }
      local refused = {}
      kit().system.events:subscribe(function(event)
        if event.message == "a1" then kit().system:actor_selection("/user/b"):tell("b2") end
        assert.matches("by a subscriber", raised_here(function() kept:replay() end))
        refused[#refused + 1] = event.message
      end, "dead_letter")

      assert.are.equal(0, kept:replay())
      kit():settle()

      assert.are.same({ "a1", "b2" }, refused)
      assert.are.same({ "a1", "b2" }, messages_of(kept:list()))
      assert.are.equal(0, kept:replay { path = "/user/b" })
    end)

    it("DL-5 are kept whether they are logged or not, and when the system ends", function()
      local system = kit({ dead_letters = { keep = 10 }, log_level = "off" }).system
      local ref = system:spawn(function() troupe.sleep(5000) end, "busy")
      for i = 1, 3 do ref:tell(i) end
      kit():settle()
      system:terminate()
      ref:tell("late")

      assert.are.same({ 2, 3, "late" }, messages_of(system.dead_letters:list()))
      assert.are.equal(0, system.dead_letters:replay())
      assert.are.equal(3, system.dead_letters:count())
    end)

    it("DL-5 do not keep the system from being collected", function()
      local found = setmetatable({}, { __mode = "k" })
      local function use_one()
        local system = troupe.system("demo", { dead_letters = { keep = 10 }, log_level = "off" })
        found[system] = true
        local ref = system:spawn(ignore)
        ref:stop()
        system:run()
        ref:tell({ ref }, ref)
        system:run()
        assert.are.equal(1, system.dead_letters:count())
      end
      use_one()
      collectgarbage()
      collectgarbage()

      assert.is_nil(next(found))
    end)

    it("DL-5 are there by request only, which is said at the caller's line", function()
      local system = kit().system

      assert.matches("make the system with dead_letters = { keep = n }",
        raised_here(function() return system.dead_letters end))
    end)

    it("DL-5 are at least one, which is said at the caller's line", function()
      local function refusal(options)
        return raised_here(function() troupe.system("demo", { dead_letters = options }) end)
      end

      assert.matches("dead_letters.keep must be an integer of at least 1 %(got 0%)",
        refusal { keep = 0 })
      assert.matches("dead_letters.keep must be .* %(got nil%)", refusal {})
      assert.matches("dead_letters must be a table %(got true%)", refusal(true))
      assert.matches('unknown option "dead_letters.max"', refusal { keep = 1, max = 2 })
    end)

    it("DL-5 refuse a wrong filter at the caller's line", function()
      local kept = keep(10)

      for _, method in ipairs { "list", "replay" } do
        local function refusal(filter)
          return raised_here(function() kept[method](kept, filter) end)
        end
        assert.matches('unknown option "paht"', refusal { paht = "/user/a" })
        assert.matches("path must be a path such as", refusal { path = "user/a" })
        assert.matches("path must be a path such as", refusal { path = 42 })
        assert.matches('must be of the system "demo"', refusal { path = "troupe://other/user/a" })
        assert.matches("reason must be", refusal { reason = 42 })
        assert.matches("limit must be an integer of at least 1", refusal { limit = 0 })
        assert.matches("options must be a table", refusal(42))
      end
    end)
  end)
end)
