local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("a probe", function()
  local kit = new_kit.each(before_each, after_each)

  it("TK-2 is an actor of the kit's system, with a name if one is given", function()
    local probe = kit():probe("probe")

    assert.are.equal("troupe://demo/user/probe", tostring(probe.ref))
    assert.are.equal("$1", kit():probe().ref.name)
    assert.matches("is taken", raised_here(function() kit():probe("probe") end))
  end)

  describe("expects", function()
    it("TK-2 messages in the order they came", function()
      local probe = kit():probe()
      probe.ref:tell("a")
      probe.ref:tell("b")

      assert.are.equal("a", probe:expect("a"))
      assert.are.equal("b", probe:expect("b"))
    end)

    it("TK-2 a message that comes later, and lets time go on to that moment", function()
      local probe = kit():probe()
      kit().system:schedule_once(70, function() probe.ref:tell("soon") end)
      kit().system:schedule_once(80, ignore)

      probe:expect("soon")

      assert.are.equal(70, kit():now())
    end)

    it("TK-2 what has come already, while time stands still", function()
      local probe = kit():probe()
      kit().system:schedule_once(70, ignore)
      probe.ref:tell("now")

      probe:expect("now")

      assert.are.equal(0, kit():now())
    end)

    it("TK-2 tables that hold the same, at any depth", function()
      local loop, other_loop = { 1 }, { 1 }
      loop[2], other_loop[2] = loop, other_loop
      local probe = kit():probe()
      probe.ref:tell { job = { 1, { "x" } } }
      probe.ref:tell(loop)
      probe.ref:tell(troupe.error("Broken", "no disk"))

      probe:expect { job = { 1, { "x" } } }
      probe:expect(other_loop)
      probe:expect(troupe.error("Broken", "no disk"))
    end)

    it("TK-2 any value, nil, false and NaN included", function()
      local probe = kit():probe()
      for i = 1, 3 do probe.ref:tell(({ nil, false, 0 / 0 })[i]) end

      assert.is_nil(probe:expect(nil))
      probe:expect(false)
      probe:expect(0 / 0)
    end)

    it("TK-2 refs by identity, and what has __eq as that says", function()
      local probe, other = kit():probe(), kit().system:spawn(ignore)
      local Ticket = { __eq = function(a, b) return a.valid and b.valid end }
      local function ticket(valid, number)
        return setmetatable({ valid = valid, number = number }, Ticket)
      end
      probe.ref:tell { other }
      probe.ref:tell(ticket(false, 1))
      probe.ref:tell(ticket(true, 1))

      assert.has_error(function() probe:expect { probe.ref } end)
      probe:expect { other }
      assert.has_error(function() probe:expect(ticket(false, 1)) end)
      probe:receive_n(1)
      probe:expect(ticket(true, 2))
    end)

    it("TK-2 nothing that differs", function()
      local different = {
        { { 1, 2 }, { 1 } }, { { 1 }, { 1, 2 } }, { { a = 1 }, { b = 1 } }, { 1, "1" },
        { { { 1 } }, { { 2 } } }, { nil, false }, { {}, "x" },
        { troupe.error("A", "x"), troupe.error("A", "y") },
        { troupe.error("A", "x"), { name = "A", message = "x" } },
      }
      for i = 1, #different do
        local probe = kit():probe()
        probe.ref:tell(different[i][1])
        assert.has_error(function() probe:expect(different[i][2]) end)
      end
    end)

    it("TK-2 a message that a function says yes to", function()
      local probe, sender = kit():probe(), kit().system:spawn(ignore)
      probe.ref:tell({ n = 4 }, sender)
      local seen_sender

      local message = probe:expect_match(function(m, from)
        seen_sender = from
        return m.n > 3
      end)

      assert.are.equal(4, message.n)
      assert.are.equal(sender, seen_sender)
    end)

    it("TK-2 nothing for a while, which passes", function()
      local probe = kit():probe()
      kit().system:schedule_once(50, function() probe.ref:tell("later") end)

      probe:expect_none(50)

      assert.are.equal(50, kit():now())
      probe:expect("later")
    end)
  end)

  describe("takes", function()
    it("TK-2 messages until a function says yes", function()
      local probe = kit():probe()
      kit().system:schedule_every(10, function() probe.ref:tell(kit():now()) end)

      local fished = probe:fish(function(n) return n > 25 end)

      assert.are.equal(30, fished)
      assert.are.equal(30, kit():now())
      probe:expect(40)
      kit().system:terminate()
    end)

    it("TK-2 the next n messages, as a list", function()
      local probe = kit():probe()
      for i = 1, 5 do kit().system:schedule_once(i, function() probe.ref:tell(i) end) end

      assert.are.same({ 1, 2, 3 }, probe:receive_n(3))
      assert.are.equal(3, kit():now())
      assert.are.same({ 4, 5 }, probe:receive_n(2))
    end)

    it("TK-2 nothing when it fails", function()
      local probe = kit():probe()
      probe.ref:tell("a")
      probe.ref:tell("b")
      local function no() return false end

      for _, fails in ipairs {
        function() probe:expect("b") end,
        function() probe:expect_match(no) end,
        function() probe:expect_match(function() error("in the test's own function") end) end,
        function() probe:expect_terminated(probe.ref) end,
        function() probe:expect_none(1) end,
        function() probe:fish(no, 10) end,
        function() probe:receive_n(3, 10) end,
      } do
        assert.has_error(fails)
      end

      assert.are.same({ "a", "b" }, probe:receive_n(2))
    end)

    it("TK-2 messages for good: it keeps none that was taken", function()
      local probe = kit():probe()
      local messages = setmetatable({ {}, {}, {} }, { __mode = "v" })
      for i = 1, 3 do probe.ref:tell(messages[i]) end

      probe:expect {}
      probe:fish(function(message) return rawequal(message, messages[3]) end)
      collectgarbage()

      assert.are.same({}, messages)
    end)

    it("TK-2 all of a hundred thousand messages, in order", function()
      local probe = kit():probe()
      for i = 1, 100000 do probe.ref:tell(i) end

      local list = probe:receive_n(100000)

      for i = 1, 100000 do assert(list[i] == i) end
    end)
  end)

  describe("answers", function()
    it("TK-2 the sender of the message taken last", function()
      local probe = kit():probe()
      local answer = kit():async(function() return probe.ref:ask("question") end)

      probe:expect("question")
      probe:reply("answer")

      local value, err, from = answer:await()
      assert.are.same({ "answer" }, { value, err })
      assert.are.equal(probe.ref, from)
    end)

    it("TK-2 another actor, as an actor does", function()
      local probe, other = kit():probe(), kit():probe()
      probe.ref:tell("from other", other.ref)
      probe.ref:tell("from nobody")

      probe:expect("from other")
      assert.are.equal(other.ref, probe.last_sender)
      probe:reply("answer")
      other:expect("answer")

      assert.are.equal(probe.ref, other.last_sender)
    end)

    it("TK-2 nobody when the last message had no sender, which is an error", function()
      local probe, other = kit():probe(), kit():probe()
      assert.matches("no sender", raised_here(function() probe:reply("answer") end))
      probe.ref:tell("from other", other.ref)
      probe.ref:tell("from nobody")
      probe:receive_n(2)

      assert.matches("no sender", raised_here(function() probe:reply("answer") end))
    end)
  end)

  describe("watches", function()
    it("TK-2 an actor, and is told of its end", function()
      local probe = kit():probe()
      local ref = kit().system:spawn(ignore)

      assert.are.equal(ref, probe:watch(ref))
      kit().system:schedule_once(20, function() ref:stop() end)

      assert.are.equal(ref, probe:expect_terminated(ref).actor)
      assert.are.equal(20, kit():now())
    end)

    it("TK-2 one that has stopped, and is told at once", function()
      local probe = kit():probe()
      local ref = kit().system:spawn(ignore)
      ref:stop()
      kit():settle()

      probe:watch(ref)

      probe:expect_match(function(message)
        return troupe.is(message, troupe.Terminated) and message.actor == ref
      end)
    end)

    it("TK-2 and takes no other end, and no look-alike, for it", function()
      local probe = kit():probe()
      local a, b = kit().system:spawn(ignore), kit().system:spawn(ignore)
      probe:watch(a)
      a:stop()
      assert.has_error(function() probe:expect_terminated(b) end)
      probe:expect_terminated(a)

      probe.ref:tell { actor = a }
      assert.has_error(function() probe:expect_terminated(a) end)
    end)

    it("TK-2 nothing but other actors of its system", function()
      local probe = kit():probe()
      local reply_ref
      kit().system:spawn(function(actor)
        reply_ref = actor.sender
        actor:reply(true)
      end):ask("give me your ref")
      local other = require("troupe.testkit").system("other")
      local stranger = other.system:spawn(ignore)

      for _, wrong in ipairs { 42, probe.ref, reply_ref, stranger } do
        raised_here(function() probe:watch(wrong) end)
      end
      raised_here(function() probe:expect_terminated(42) end)
      other.system:terminate()
    end)
  end)

  describe("fails", function()
    --- What a failing expectation says, once it is certain that it names its line.
    local failure = raised_here

    it("TK-2 with what it expected and what came instead", function()
      local probe, sender = kit():probe(), kit().system:spawn(ignore, "sender")
      probe.ref:tell({ "pong", n = 2 }, sender)
      kit():advance(20)
      probe.ref:tell("later")
      kit():settle()

      local text = failure(function() probe:expect("ping") end)

      assert.are.equal('expect: expected "ping"; this came:\n'
        .. '  { "pong", n = 2 } from troupe://demo/user/sender at 0 ms\n'
        .. '  "later" at 20 ms', text:gsub("^.-:%d+: ", ""), nil)
    end)

    it("TK-2 with how long it waited, when nothing came", function()
      local probe = kit():probe()

      assert.matches('expect: expected "ping" within 3000 ms; nothing came$',
        failure(function() probe:expect("ping") end))
      assert.are.equal(3000, kit():now())
      assert.matches("expected a message that matches within 10 ms; nothing came$",
        failure(function() probe:expect_match(ignore, 10) end))
      assert.matches("expected a message that matches within 10.5 ms; nothing came$",
        failure(function() probe:fish(ignore, 10.5) end))
      assert.matches("expected the end of troupe://demo/user/$1 within 10 ms; nothing came$",
        failure(function() probe:expect_terminated(probe.ref, 10) end))
      assert.are.equal(3030.5, kit():now())
    end)

    it("TK-2 with what came of what it waited for", function()
      local probe = kit():probe()
      probe.ref:tell("one")

      assert.matches('expected 2 messages within 10 ms; this came:\n  "one" at 0 ms$',
        failure(function() probe:receive_n(2, 10) end))
      assert.matches('expected a message that matches within 10 ms; this came:\n  "one" at 0 ms$',
        failure(function() probe:fish(ignore, 10) end))
      assert.matches('expected a message that matches; this came:\n  "one" at 0 ms$',
        failure(function() probe:expect_match(ignore, 10) end))
      assert.matches('expected nothing within 10 ms; this came:\n  "one" at 0 ms$',
        failure(function() probe:expect_none(10) end))
      assert.are.equal(20, kit():now())
    end)

    it("TK-2 for all messages within one time-out", function()
      local probe = kit():probe()
      kit().system:schedule_every(10, function() probe.ref:tell("tick") end)

      failure(function() probe:fish(ignore, 35) end)
      assert.are.equal(35, kit():now())
      failure(function() probe:receive_n(10, 35) end)
      assert.are.equal(70, kit():now())
      kit().system:terminate()
    end)

    it("TK-2 with twenty messages and the count of the others", function()
      local probe = kit():probe()
      for i = 1, 25 do probe.ref:tell(i) end
      kit():settle()

      local text = failure(function() probe:expect(0) end)

      assert.matches("\n  20 at 0 ms\n  and 5 more$", text)
    end)

    it("TK-2 with messages that can be read", function()
      local self_holding = {}
      self_holding.self = self_holding
      local wide, letters, twice = {}, {}, {}
      for i = 1, 30 do wide[i] = i end
      for letter in ("abcdefghijklmnopqrstuvwxyz"):gmatch(".") do letters[letter] = 1 end
      local shown = {
        { { [3] = 1, [true] = 2, ["a b"] = 3, b = 4, a = {} },
          '{ [true] = 2, [3] = 1, a = {}, ["a b"] = 3, b = 4 }' },
        { self_holding, "{ self = {...} }" },
        { { { { { { {} } } } } }, "{ { { { { {...} } } } } }" },
        { { twice, twice, twice, twice, twice }, "{ {}, {}, {}, {}, {} }" },
        { wide, "{ " .. table.concat(wide, ", ", 1, 20) .. ", ... }" },
        { letters, "s = 1, t = 1, ... }" },
        { 'say "hi"\n', [["say \"hi\"\x0a"]] },
        { 0 / 0, "nan" }, { nil, "nil" },
        { troupe.error("Broken", "no disk"),
          'troupe.Error { message = "no disk", name = "Broken" }' },
        { troupe.Broadcast("x"), 'troupe.Broadcast { payload = "x" }' },
        { kit().system:spawn(ignore, "some").path, "troupe://demo/user/some" },
        { ("x"):rep(2000), '"' .. ("x"):rep(999) .. "..." },
      }
      for i = 1, #shown do
        local probe = kit():probe()
        probe.ref:tell(shown[i][1])
        kit():settle()
        local text = failure(function() probe:expect_none(1) end)
        assert.matches(shown[i][2] .. " at 0 ms", text, 1, true)
      end
    end)

    it("TK-2 at once when the probe has been stopped", function()
      local probe = kit():probe()
      probe.ref:stop()
      assert.matches('expected "a"; the probe has stopped; nothing came',
        failure(function() probe:expect("a") end))
      assert.are.equal(0, kit():now())

      local stopped_later = kit():probe()
      kit().system:schedule_once(5, function() stopped_later.ref:stop() end)
      assert.matches("the probe has stopped", failure(function() stopped_later:expect_none(10) end))
      assert.are.equal(5, kit():now())
    end)

    it("TK-2 with a string, which luassert and plain Lua understand", function()
      local probe = kit():probe()

      assert.has_error(function() probe:expect("a", 1) end,
        'expect: expected "a" within 1 ms; nothing came')
      assert.error_matches(function() probe:expect("a", 1) end, "nothing came")
      local _, err = pcall(probe.expect, probe, "a", 1)
      assert.are.equal("string", type(err))
    end)
  end)

  it("TK-2 waits in a task as on the main chunk", function()
    local probe = kit():probe()
    local task = kit():async(function()
      probe:expect("first")
      return probe:fish(function(m) return m == "last" end), kit():now()
    end)
    for i, message in ipairs { "first", "other", "last" } do
      kit():advance(i)
      probe.ref:tell(message)
    end

    assert.are.same({ "last", 6 }, { task:await() })
  end)

  it("TK-2 gives each message to one of the tasks that wait", function()
    local probe = kit():probe()
    local tasks = {}
    for i = 1, 3 do tasks[i] = kit():async(function() return probe:receive_n(1)[1] end) end
    kit():advance(5)
    for i = 1, 3 do probe.ref:tell(i) end

    local got = {}
    for i, task in ipairs(tasks) do got[i] = task:await() end
    table.sort(got)
    assert.are.same({ 1, 2, 3 }, got)
  end)

  it("TK-2 refuses wrong arguments at the caller's line", function()
    local probe = kit():probe()
    probe.ref:tell("a")

    for _, wrong in ipairs {
      function() probe:expect("a", 0) end,
      function() probe:expect_match("a") end,
      function() probe:expect_match(ignore, "soon") end,
      function() probe:expect_terminated(probe.ref, -1) end,
      function() probe:expect_none() end,
      function() probe:fish() end,
      function() probe:fish(ignore, 1 / 0) end,
      function() probe:receive_n(0) end,
      function() probe:receive_n(1, {}) end,
    } do
      assert.matches("must be", raised_here(wrong))
    end
    probe:expect("a")
  end)
end)
