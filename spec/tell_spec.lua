local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("tell and sender", function()
  local kit = new_kit.each(before_each, after_each)

  it("TELL-1 never runs the receiver inline", function()
    local seen = {}
    local receiver = kit().system:spawn(function(_, message) seen[#seen + 1] = message end)
    local sender = kit().system:spawn(function()
      seen[#seen + 1] = "before"
      receiver:tell("mail")
      seen[#seen + 1] = "after"
    end)
    sender:tell("go")
    assert.are.same({}, seen)

    kit():settle()

    assert.are.same({ "before", "after", "mail" }, seen)
  end)

  it("TELL-1 does not run an actor that tells itself inline", function()
    local seen = {}
    local ref = kit().system:spawn(function(actor, n)
      seen[#seen + 1] = "begin " .. n
      if n < 3 then actor.ref:tell(n + 1) end
      seen[#seen + 1] = "end " .. n
    end)
    ref:tell(1)
    kit():settle()

    assert.are.same({ "begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3" }, seen)
  end)

  it("TELL-1 never yields: it works where Lua cannot yield", function()
    local seen = {}
    local receiver = kit().system:spawn(function(_, message) seen[#seen + 1] = message end)
    kit().system:spawn(function()
      (("a b")):gsub("%a", function(letter) receiver:tell(letter) end)
      table.sort({ 2, 1 }, function(a, b)
        receiver:tell("sorting")
        return a < b
      end)
    end):tell("go")
    kit():settle()

    assert.are.same({ "a", "b", "sorting" }, { seen[1], seen[2], seen[3] })
  end)

  it("TELL-1 gives true", function()
    assert.is_true(kit().system:spawn(ignore):tell("mail"))
  end)

  it("TELL-2 keeps the order of each sender", function()
    local system = kit().system
    local seen = { a = {}, b = {} }
    local receiver = system:spawn(function(_, message)
      local list = seen[message.from]
      list[#list + 1] = message.n
    end)
    local function count_to_100(name)
      local ref = system:spawn(function(actor, n)
        receiver:tell({ from = name, n = n })
        if n < 100 then actor.ref:tell(n + 1) end
      end)
      ref:tell(1)
    end
    count_to_100("a")
    count_to_100("b")
    kit():settle()

    local expected = {}
    for n = 1, 100 do expected[n] = n end
    assert.are.same({ a = expected, b = expected }, seen)
  end)

  it("TELL-2 lets a parent's stop overtake mail", function()
    local seen = {}
    local parent = kit().system:spawn(function(actor)
      local child = actor:spawn(function(_, message) seen[#seen + 1] = message end)
      child:tell("queued")
      actor:stop(child)
    end)
    parent:tell("go")
    kit():settle()

    assert.are.same({}, seen)
  end)

  it("TELL-3 takes the sender as its second argument", function()
    local system = kit().system
    local sender
    local receiver = system:spawn(function(actor) sender = actor.sender end)
    local other = system:spawn(ignore)
    receiver:tell("mail", other)
    kit():settle()

    assert.are.equal(other, sender)
  end)

  it("TELL-3 has no sender without one, also when an actor tells", function()
    local system = kit().system
    local sender = "none seen"
    local receiver = system:spawn(function(actor) sender = actor.sender end)
    local ask = system:spawn(function(actor)
      receiver:tell("mail")
      actor:reply("told")
    end)
    ask:ask("tell")
    kit():settle()

    assert.is_nil(sender)
  end)

  it("TELL-3 refuses a sender that is no ref", function()
    local ref = kit().system:spawn(ignore)
    for _, sender in ipairs { 42, "me", {}, true } do
      raised_here(function() ref:tell("mail", sender) end)
    end
    assert.are.equal(0, kit().system:stats().queued)
  end)

  it("TELL-3 lets a reply go to the sender", function()
    local system = kit().system
    local seen
    local echo = system:spawn(function(actor, message) actor:reply(message .. "!") end)
    local caller = system:spawn(function(actor, message) seen = { message, actor.sender } end)
    echo:tell("hello", caller)
    kit():settle()

    assert.are.equal("hello!", seen[1])
    assert.are.equal(echo, seen[2])
  end)

  describe("forward", function()
    --- An actor that passes all its mail on.
    local function pass_on_to(ref)
      return kit().system:spawn(function(actor) actor:forward(ref) end)
    end

    local function letters()
      local list = {}
      kit().system.events:subscribe(function(event)
        list[#list + 1] = ("%s %s"):format(event.message, event.reason)
      end, "dead_letter")
      return list
    end

    it("TELL-3 passes the message in hand on, unchanged, with its sender", function()
      local message, got = { "mail" }, nil
      local me = kit().system:spawn(ignore)
      local last = kit().system:spawn(function(actor, m) got = { m, actor.sender } end)

      pass_on_to(pass_on_to(last)):tell(message, me)
      kit():settle()

      assert.is_true(rawequal(message, got[1]))
      assert.are.equal(me, got[2])
    end)

    it("TELL-3 has the receiver answer an ask", function()
      local echo = kit().system:spawn(function(actor, m) actor:reply("echo of " .. m) end, "echo")

      local value, _, from = pass_on_to(echo):ask("mail")

      assert.are.equal("echo of mail", value)
      assert.are.equal(echo, from)
    end)

    it("TELL-3 has the receiver answer, also when the actor has stopped meanwhile", function()
      local slow = kit().system:spawn(function(actor, m)
        troupe.sleep(50)
        actor:reply(m)
      end)
      local ref = kit().system:spawn(function(actor)
        actor:forward(slow)
        actor:stop()
      end)

      assert.are.equal("mail", (ref:ask("mail")))
    end)

    it("ASK-7 fails an ask at once when whoever it was forwarded to stops", function()
      local quits = kit().system:spawn(function(actor)
        troupe.sleep(10)
        actor:stop()
      end, "quits")
      quits:tell("stop")
      kit():settle()

      local _, err = pass_on_to(quits):ask("mail")

      assert.are.equal("ActorStoppedError", err.name)
      assert.are.equal("troupe://demo/user/quits", err.path)
      assert.are.equal(10, kit():now())
    end)

    it("ASK-7 fails an ask at once that is forwarded to a stopped actor, during a wait", function()
      local dead = kit().system:spawn(ignore, "dead")
      dead:stop()
      local ref = kit().system:spawn(function(actor)
        actor:forward(dead)
        troupe.sleep(50)
      end)

      local _, err = ref:ask("mail")

      assert.are.equal("troupe://demo/user/dead", err.path)
      assert.are.equal(0, kit():now())
    end)

    it("MBX-3 dead-letters what a mailbox refuses, and fails an ask at once", function()
      local list = letters()
      local full = kit().system:spawn(function() troupe.sleep(50) end, "full",
        { mailbox = { capacity = 1, overflow = "reject" } })
      local ref = pass_on_to(full)
      full:tell("in hand")
      kit():settle()
      full:tell("queued")

      ref:tell("too much")
      local _, err = ref:ask("question")

      assert.are.same({ "too much mailbox-full" }, list)
      assert.are.equal("MailboxFullError", err.name)
      assert.are.equal(0, kit():now())
    end)

    it("TELL-3 refuses what is no actor of its system", function()
      local other = testkit.system("other")
      local stranger = other.system:spawn(ignore)
      local ref = kit().system:spawn(function(actor)
        assert.matches("must be a ref", raised_here(function() actor:forward("b") end))
        assert.matches("another system", raised_here(function() actor:forward(stranger) end))
        local reply = actor.sender
        assert.matches("reply ref", raised_here(function() actor:forward(reply) end))
        actor:reply("checked")
      end)

      assert.are.equal("checked", (ref:ask("go")))
      other.system:terminate()
    end)

    it("TELL-3 refuses to forward when no message is in hand, in a hook or later", function()
      local kept, why
      local echo = kit().system:spawn(ignore)
      kit().system:spawn({
        pre_start = function(actor)
          why = raised_here(function() actor:forward(echo) end)
        end,
        receive = function(actor) kept = actor end,
      }):tell("go")
      kit():settle()

      assert.matches("no message is in hand", why)
      assert.matches("no message is in hand", raised_here(function() kept:forward(echo) end))
    end)
  end)

  it("TELL-4 keeps the sender through a wait, whoever else tells meanwhile", function()
    local system = kit().system
    local seen = {}
    local a, b = system:spawn(ignore, "a"), system:spawn(ignore, "b")
    local receiver = system:spawn(function(actor)
      local before = actor.sender.name
      troupe.sleep(10)
      seen[#seen + 1] = before .. " " .. actor.sender.name
    end)
    receiver:tell("mail", a)
    kit():advance(5)
    receiver:tell("mail", b)
    kit():advance(20)

    assert.are.same({ "a a", "b b" }, seen)
  end)

  it("TELL-4 has a sender of its own in each of two actors that wait", function()
    local system = kit().system
    local seen = {}
    local function handler(actor, ms)
      troupe.sleep(ms)
      seen[#seen + 1] = actor.sender.name
    end
    system:spawn(handler):tell(20, system:spawn(ignore, "first"))
    system:spawn(handler):tell(10, system:spawn(ignore, "second"))
    kit():advance(20)

    assert.are.same({ "second", "first" }, seen)
  end)

  it("TELL-4 has no sender outside a handler", function()
    local system = kit().system
    local kept
    local in_hooks = {}
    local other = system:spawn(ignore)
    local function note(actor) in_hooks[#in_hooks + 1] = actor.sender or "none" end
    local ref = system:spawn({
      pre_start = note,
      receive = function(actor) kept = actor end,
      post_stop = note,
    })
    ref:tell("mail", other)
    kit():settle()
    assert.is_nil(kept.sender)

    ref:stop()
    kit():settle()

    assert.are.same({ "none", "none" }, in_hooks)
    assert.is_nil(kept.sender)
  end)

  it("TELL-5 dead-letters the mail of a stopped actor", function()
    local system = kit().system
    local letter
    system.events:subscribe(function(event) letter = event end, "dead_letter")
    local ref = system:spawn(ignore, "gone")
    ref:stop()
    kit():settle()

    assert.is_true(ref:tell("late"))
    kit():settle()

    assert.are.equal("late", letter.message)
    assert.are.equal("stopped", letter.reason)
  end)

  it("TELL-5 never makes a ref valid again, even when its name is taken anew", function()
    local system = kit().system
    local seen, letters = {}, {}
    system.events:subscribe(function(event) letters[#letters + 1] = event.message end,
      "dead_letter")
    local function record(_, message) seen[#seen + 1] = message end
    local old = system:spawn(record, "name")
    old:stop()
    kit():settle()
    local new = system:spawn(record, "name")

    old:tell("to the old one")
    new:tell("to the new one")
    kit():settle()

    assert.are.same({ "to the new one" }, seen)
    assert.are.same({ "to the old one" }, letters)
  end)

  it("TELL-6 takes any Lua value", function()
    local values = {
      false, true, 0, -0.0, 1, 1.0, 2 ^ 53, math.mininteger, math.maxinteger, math.huge,
      -math.huge, "", "a\0b", ("x"):rep(100000), {}, print, ignore, coroutine.create(ignore),
      io.stdout,
    }
    local seen = {}
    local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end)
    for _, value in ipairs(values) do ref:tell(value) end
    kit():settle()

    assert.are.equal(#values, #seen)
    for i, value in ipairs(values) do
      assert.is_true(rawequal(value, seen[i]))
      assert.are.equal(math.type(value), math.type(seen[i]))
    end
    assert.are.equal(-math.huge, 1 / seen[4])
  end)

  it("TELL-6 takes nil and NaN", function()
    local seen = {}
    local ref = kit().system:spawn(function(_, message)
      seen[#seen + 1] = message == nil and "nil" or message ~= message and "nan"
    end)
    ref:tell(nil)
    ref:tell(0 / 0)
    ref:tell(nil)
    kit():settle()

    assert.are.same({ "nil", "nan", "nil" }, seen)
  end)

  it("TELL-6 passes tables by reference, unchanged", function()
    local message = setmetatable({ 1, 2 }, { __index = error, __newindex = error })
    local got
    local ref = kit().system:spawn(function(_, received) got = received end)
    ref:tell(message)
    kit():settle()

    assert.is_true(rawequal(message, got))
  end)

  it("TELL-6 keeps a message alive until it has been handled, and no longer", function()
    local weak = setmetatable({}, { __mode = "v" })
    local ref = kit().system:spawn(function(_, message) message.handled = true end)
    do
      local message = { "mail" }
      weak.message = message
      ref:tell(message)
    end
    collectgarbage()
    assert.is_not_nil(weak.message)

    kit():settle()
    collectgarbage()

    assert.is_nil(weak.message)
  end)

  it("TELL-5 a finalizer can tell by a ref that it was made with", function()
    local seen = {}
    kit().system:spawn(function(_, message) seen[#seen + 1] = message end, "a")
    for i = 1, 3 do
      setmetatable({ ref = kit().system:actor_selection("/user/a"):resolve()[1] },
        { __gc = function(self) self.ref:tell(i) end })
    end
    collectgarbage()

    kit():settle()

    table.sort(seen)
    assert.are.same({ 1, 2, 3 }, seen)
  end)

  it("TELL-5 what is told by a ref that went before its holder is a dead letter", function()
    local letters = {}
    kit().system.events:subscribe(function(event)
      letters[#letters + 1] = event.message .. " to " .. event.recipient
    end, "dead_letter")
    kit().system:spawn(function() end, "a")
    collectgarbage()
    local holder = setmetatable({}, { __gc = function(self) self.ref:tell("message") end })
    holder.ref = kit().system:actor_selection("/user/a"):resolve()[1]
    holder = nil -- luacheck: ignore
    collectgarbage()

    kit():settle()

    assert.are.same({ "message to troupe://demo/ (a ref that was collected)" }, letters)
  end)

  it("TELL-3 forward treats a mailbox with so many messages as full", function()
    local letters = {}
    kit().system.events:subscribe(function(event)
      letters[#letters + 1] = event.message .. " " .. event.reason
    end, "dead_letter")
    local target = kit().system:spawn(function() troupe.sleep(1) end)
    local ref = kit().system:spawn(function(actor, message) actor:forward(target, message) end)
    target:tell("in hand")
    kit():settle()

    for _, most in ipairs { 1, 1, 2, 2 } do ref:tell(most) end
    kit():settle()

    assert.are.same({ "1 mailbox-full", "2 mailbox-full" }, letters)
  end)

  it("TELL-3 forward refuses a number of messages that is none", function()
    local refused = 0
    local ref = kit().system:spawn(function(actor)
      for _, most in ipairs { 0, -1, 1.5, 2 ^ 32, "3", {} } do
        local ok, err = pcall(actor.forward, actor, actor.ref, most)
        local expected = tostring(err):find("forward: most must be an integer from 1 to", 1, true)
        if not ok and expected then refused = refused + 1 end
      end
    end)
    ref:tell("go")
    kit():settle()

    assert.are.equal(6, refused)
  end)
end)
