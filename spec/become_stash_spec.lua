local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("become", function()
  local kit = new_kit.each(before_each, after_each)

  --- An actor whose behavior's own function does what it is told, and lists who handled the rest.
  local function chameleon(seen)
    local function note(name)
      return function(actor, message)
        if type(message) == "function" then return message(actor) end
        seen[#seen + 1] = name .. ":" .. tostring(message)
      end
    end
    return kit().system:spawn(note("base")), note
  end

  local function tell_all(ref, messages)
    for _, message in ipairs(messages) do ref:tell(message) end
    kit():settle()
  end

  it("BEC-1 replaces from the next message on, and goes back to the base at most", function()
    local seen = {}
    local ref, note = chameleon(seen)
    tell_all(ref, {
      "1",
      function(actor)
        actor:become(note("a"))
        actor:become(note("b"))
      end,
      "2",
      function(actor) actor:unbecome() end,
      "3",
      function(actor) actor:unbecome() end,
      "4",
    })

    assert.are.same({ "base:1", "b:2", "base:3", "base:4" }, seen)
  end)

  it("BEC-1 pushes with push = true", function()
    local seen = {}
    local ref, note = chameleon(seen)
    tell_all(ref, {
      function(actor)
        actor:become(note("a"), { push = true })
        actor:become(note("b"), { push = true })
      end,
      "1",
      function(actor) actor:unbecome() end,
      "2",
      function(actor) actor:unbecome() end,
      "3",
    })

    assert.are.same({ "b:1", "a:2", "base:3" }, seen)
  end)

  it("BEC-1 is reset by a restart", function()
    local seen = {}
    local ref, note = chameleon(seen)
    tell_all(ref, {
      function(actor) actor:become(note("a")) end,
      "1",
      function() error("restart") end,
      "2",
    })

    assert.are.same({ "a:1", "base:2" }, seen)
  end)

  it("BEC-1 refuses what is no function", function()
    local why
    kit().system:spawn(function(actor)
      why = tostring(select(2, pcall(actor.become, actor, "b")))
    end):tell("go")
    kit():settle()

    assert.matches("become: the function must be a function %(got \"b\"%)", why)
  end)
end)

describe("the stash", function()
  local kit = new_kit.each(before_each, after_each)

  --- An actor that sets everything aside until it is told "open".
  local function gate(seen, options)
    return kit().system:spawn(function(actor, message)
      if message == "open" then
        actor:become(function(_, later) seen[#seen + 1] = later end)
        actor:unstash_all()
      elseif message == "fail" then
        error("restart")
      else
        actor:stash()
      end
    end, "gate", options)
  end

  local function letters()
    local list = {}
    kit().system.events:subscribe(function(event)
      list[#list + 1] = event.message .. " " .. event.reason
    end, "dead_letter")
    return list
  end

  it("STASH-1 puts all back in front, in order", function()
    local seen = {}
    local ref = gate(seen)
    for _, message in ipairs { "a", "b", "open", "c" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a", "b", "c" }, seen)
  end)

  it("STASH-1 keeps the senders, so that an ask is answered later", function()
    local ref = kit().system:spawn(function(actor, message)
      if message == "open" then
        actor:become(function(self, question) self:reply("answer to " .. question) end)
        actor:unstash_all()
      else
        actor:stash()
      end
    end)
    local answer = kit():async(function() return ref:ask("question") end)
    ref:tell("open")
    kit():settle()

    assert.are.equal("answer to question", (answer:await()))
  end)

  it("STASH-1 is for the message in hand, once", function()
    local why = {}
    local kept
    kit().system:spawn(function(actor)
      kept = actor
      actor:stash()
      why[1] = tostring(select(2, pcall(actor.stash, actor)))
    end):tell("a")
    kit():settle()
    why[2] = tostring(select(2, pcall(kept.stash, kept)))

    assert.matches("the message has been set aside already", why[1])
    assert.matches("no message is in hand", why[2])
  end)

  it("STASH-1 raises when it is full: 1024, or the option", function()
    local seen = {}
    local ref = gate(seen, {
      stash_capacity = 2,
      supervisor_strategy = troupe.one_for_one { decider = "resume" },
    })
    for _, message in ipairs { "a", "b", "too much", "open" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a", "b" }, seen)
    assert.matches("stash: the stash is full", kit().logs[1].message)
  end)

  it("LIFE-4 dead-letters the stash before pre_restart", function()
    local list = letters()
    local ref = kit().system:spawn({
      receive = function(actor, message)
        if message == "fail" then error("restart") end
        actor:stash()
      end,
      pre_restart = function() list[#list + 1] = "pre_restart" end,
    })
    for _, message in ipairs { "a", "b", "fail" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "a restarted", "b restarted", "pre_restart" }, list)
  end)

  it("STOP-4 dead-letters the stash, then the mail", function()
    local list = letters()
    local ref = kit().system:spawn(function(actor, message)
      if message == "stop" then actor:stop() else actor:stash() end
    end)
    for _, message in ipairs { "aside 1", "aside 2", "stop", "mail" } do ref:tell(message) end
    kit():settle()

    assert.are.same({ "aside 1 stopped", "aside 2 stopped", "mail stopped" }, list)
  end)

  it("ASK-7 fails an ask that is set aside when the actor stops", function()
    local ref = gate({})
    local answer = kit():async(function() return ref:ask("question") end)
    ref:stop()
    kit():settle()

    local _, err = answer:await()

    assert.is_true(troupe.is_error(err, "ActorStoppedError"))
    assert.are.equal(0, kit():now())
  end)

  it("ASK-7 lets an ask time out that a restart finds in the stash, as a dead letter", function()
    local list = letters()
    local ref = kit().system:spawn(function(actor, message)
      if message == "fail" then error("restart") end
      actor:stash()
    end)
    local answer = kit():async(function() return ref:ask("question", 100) end)
    ref:tell("fail")
    kit():settle()
    assert.are.equal("waiting", answer:status())

    local _, err = answer:await()

    assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    assert.are.same({ "question restarted" }, list)
  end)

  it("STASH-1 puts all back from outside its handlers, too", function()
    local seen, kept = {}, nil
    local ref = kit().system:spawn(function(actor, message)
      kept = actor
      seen[#seen + 1] = message
      if #seen == 1 then actor:stash() end
    end)
    ref:tell("message")
    kit():settle()

    kept:unstash_all()
    kit():settle()

    assert.are.same({ "message", "message" }, seen)
  end)
end)
