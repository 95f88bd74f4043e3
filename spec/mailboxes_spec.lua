local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("mailboxes", function()
  local kit = new_kit.each(before_each, after_each)

  --- Queues the integers from 1 to `n` for one actor, lets it handle them, and gives the CPU time
  --- of both in seconds. Fails unless they come in order.
  local function queue_and_drain(n)
    local last = 0
    local ref = kit().system:spawn(function(_, message)
      assert(message == last + 1)
      last = message
    end)
    kit():settle()
    local began = os.clock()
    for i = 1, n do ref:tell(i) end
    assert.are.equal(n, kit().system:stats().queued)
    kit():settle()
    local seconds = os.clock() - began
    assert.are.equal(n, last)
    ref:stop()
    kit():settle()
    return seconds
  end

  it("MBX-1 delivers a million queued messages in order", function()
    queue_and_drain(1000000)
  end)

  it("MBX-1 costs no more per message when a million are queued", function()
    queue_and_drain(100000)
    local small = queue_and_drain(100000) / 100000
    local large = queue_and_drain(1000000) / 1000000

    assert.is_true(large < 4 * small, ("%.0f ns against %.0f"):format(large * 1e9, small * 1e9))
  end)

  it("MBX-1 gives the memory back when it has drained", function()
    local ref = kit().system:spawn(function() end)
    kit():settle()
    local before = kit().system:stats().engine_bytes

    for i = 1, 1000000 do ref:tell(i) end
    local full = kit().system:stats().engine_bytes
    kit():settle()
    local after = kit().system:stats().engine_bytes

    assert.is_true(full - before >= 16 * 1000000)
    -- What may stay is the pool of buffers for the next mailboxes, which is bounded.
    assert.is_true(after - before <= 2 ^ 20, ("%d bytes are left"):format(after - before))
  end)

  it("MBX-1 keeps the order while it is filled and drained by turns", function()
    local sent, handled = 0, 0
    local consumer = kit().system:spawn(function(_, n)
      handled = handled + 1
      assert(n == handled)
    end)
    kit().system:spawn(function(actor, round)
      for _ = 1, round % 7 * 11 do
        sent = sent + 1
        consumer:tell(sent)
      end
      if round < 500 then actor.ref:tell(round + 1) end
    end, "producer", { throughput = 1 }):tell(1)
    kit():settle()

    assert.are.equal(sent, handled)
  end)

  describe("with a bound", function()
    --- Tells the letters of `text` to an actor with that mailbox, and gives what it handled.
    local function handled(mailbox, text)
      local seen = {}
      local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end, nil,
        { mailbox = mailbox })
      for letter in text:gmatch(".") do ref:tell(letter) end
      kit():settle()
      return table.concat(seen)
    end

    it("MBX-2 is drop-head unless something else is said", function()
      assert.are.equal("cde", handled({ capacity = 3 }, "abcde"))
    end)

    it("MBX-2 refuses a policy without a capacity, and a policy that does not exist", function()
      local function spawn(mailbox)
        return function() kit().system:spawn(function() end, nil, { mailbox = mailbox }) end
      end

      assert.error_matches(spawn { overflow = "reject" },
        "spawn: mailbox%.capacity must be an integer from 1 to 2147483648 %(got nil%)")
      assert.error_matches(spawn { capacity = 1, overflow = "drop" },
        'spawn: mailbox%.overflow must be one of .* %(got "drop"%)')
    end)

    it("MBX-3 drop-head keeps the latest", function()
      assert.are.equal("cde", handled({ capacity = 3, overflow = "drop-head" }, "abcde"))
    end)

    it("MBX-3 drop-new keeps the earliest", function()
      assert.are.equal("ab", handled({ capacity = 2, overflow = "drop-new" }, "abcd"))
    end)

    it("MBX-3 reject gives the sender an error and keeps the earliest", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end, nil,
        { mailbox = { capacity = 1, overflow = "reject" } })

      assert.is_true(ref:tell("a"))
      local ok, err = ref:tell("b")
      kit():settle()

      assert.is_nil(ok)
      assert.is_true(troupe.is_error(err, "MailboxFullError"))
      assert.are.same({ "a" }, seen)
    end)

    it("MBX-3 fails an ask that is shed, at once", function()
      local busy = kit().system:spawn(function(actor) actor:reply("served") end, nil,
        { mailbox = { capacity = 1, overflow = "drop-head" } })
      local function ask() return select(2, busy:ask("x")) end

      local first, second = kit().system:go(ask), kit().system:go(ask)
      kit():settle()

      assert.is_true(troupe.is_error(first:await(), "MailboxFullError"))
      assert.is_nil(second:await())
      assert.are.equal(0, kit():now())
    end)

    it("MBX-3 fails no ask of which another copy stays", function()
      local pool = kit().system:spawn(troupe.Router.custom(1, function(actor)
        actor:reply("served")
      end, function(routees) return { routees[1], routees[1] } end, {
        mailbox = { capacity = 1, overflow = "drop-head" },
      }))

      assert.are.equal("served", (pool:ask("x")))
    end)

    it("MBX-4 leaves the message in hand out of the count", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message)
        seen[#seen + 1] = message
        troupe.sleep(10)
      end, nil, { mailbox = { capacity = 1, overflow = "drop-new" } })
      ref:tell("in hand")
      kit():settle()

      ref:tell("queued")
      ref:tell("shed")
      kit():advance(100)

      assert.are.same({ "in hand", "queued" }, seen)
    end)

    it("MBX-5 sheds no signal: a stop comes through a full mailbox", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end, nil,
        { mailbox = { capacity = 1, overflow = "drop-new" } })
      ref:tell("a")
      ref:stop()
      kit():settle()

      assert.are.same({ "a" }, seen)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("MBX-6 publishes what it sheds, with its policy", function()
      local dropped = {}
      kit().system.events:subscribe(function(event)
        dropped[#dropped + 1] = event.policy .. " " .. event.message .. " " .. event.ref.name
      end, "message_dropped")
      for _, policy in ipairs { "drop-head", "drop-new", "reject" } do
        local ref = kit().system:spawn(function() end, policy .. "-actor",
          { mailbox = { capacity = 1, overflow = policy } })
        ref:tell("old")
        ref:tell("new")
      end
      kit():settle()

      assert.are.same({
        "drop-head old drop-head-actor",
        "drop-new new drop-new-actor",
        "reject new reject-actor",
      }, dropped)
    end)

    for _, policy in ipairs { "drop-head", "drop-new", "reject" } do
      it("MBX-6 publishes no loss of an event, which would make another: " .. policy, function()
        local events = kit().system.events
        local waiting = kit().system:spawn(function() troupe.sleep(1000) end, "waiting",
          { mailbox = { capacity = 1, overflow = policy } })
        local published = 0
        events:subscribe(waiting, "message_dropped")
        events:subscribe(function()
          published = published + 1
          if published == 10000 then events:unsubscribe(waiting) end -- or it would never end
        end, "message_dropped")
        local full = kit().system:spawn(function() end, nil, { mailbox = { capacity = 1 } })
        for i = 1, 4 do full:tell(i) end

        kit():settle()

        assert.are.equal(3, published)
      end)
    end

    it("MBX-6 counts what it sheds and refuses, by policy", function()
      local function dropped() return kit().system:stats().dropped end
      assert.are.same({ ["drop-head"] = 0, ["drop-new"] = 0, reject = 0, ["drop-lowest"] = 0 },
        dropped())
      for policy, messages in pairs {
        ["drop-head"] = 2, ["drop-new"] = 3, reject = 4, ["drop-lowest"] = 5,
      } do
        local priority = policy == "drop-lowest" and function(i) return i end or nil
        local ref = kit().system:spawn(function() end, nil,
          { mailbox = { capacity = 1, overflow = policy, priority = priority } })
        for i = 1, messages do ref:tell(i) end
      end

      assert.are.same({ ["drop-head"] = 1, ["drop-new"] = 2, reject = 3, ["drop-lowest"] = 4 },
        dropped())
    end)
  end)

  describe("that grow deep", function()
    local function depths(ref)
      local found = {}
      for _, record in ipairs(kit().logs) do
        if record.level == "warn" and record.path == tostring(ref.path) then
          found[#found + 1] = record.message
        end
      end
      return found
    end

    local function tell(ref, n)
      for i = 1, n do ref:tell(i) end
    end

    it("MBX-8 log a warning at 10,000 messages and at each doubling", function()
      local ref = kit().system:spawn(function() end, "deep")
      kit().system:spawn(function() end, "shallow"):tell(1)

      tell(ref, 9999)
      kit():settle()
      tell(ref, 45000)
      kit():settle()

      assert.are.same({
        "10000 messages wait in its mailbox",
        "20000 messages wait in its mailbox",
        "40000 messages wait in its mailbox",
      }, depths(ref))
    end)

    it("MBX-8 publish the warning with the depth", function()
      local events = {}
      kit().system.events:subscribe(function(event) events[#events + 1] = event end, "warning")
      local ref = kit().system:spawn(function() end)

      tell(ref, 10000)
      kit():settle()

      assert.are.same({ { kind = "warning", code = "deep-mailbox", ref = ref, depth = 10000 } },
        events)
    end)

    it("MBX-8 warn anew once all that was in them has been withdrawn", function()
      local caller = kit().system:spawn(function() end)
      local kinds = { { capacity = 20000 }, { priority = function() return 1 end } }
      for _, mailbox in ipairs(kinds) do
        local pool = kit().system:spawn(troupe.Router.scatter_gather_first_completed(2,
          function(actor, message)
            if message == "wait" then return troupe.sleep(actor.name == "routee-1" and 9 or 1) end
            actor:reply(message)
          end, { cancel_losers = true }, { mailbox = mailbox }))
        local loser = pool:ask(troupe.GetRoutees)[1]
        pool:tell(troupe.Broadcast("wait"))
        for i = 1, 10000 do pool:tell(i, caller) end
        kit():advance(1)
        assert.are.equal(0, kit().system:inspect(loser).queued)
        assert.are.equal(1, #depths(loser))

        tell(loser, 10000)

        kit():settle()
        assert.are.equal(2, #depths(loser))
        kit():advance(10)
      end
    end)

    it("MBX-8 warn anew once they have been empty, not when they go up and down", function()
      local ref = kit().system:spawn(function(_, message)
        if message == "wait" then troupe.sleep(1) end
      end, "deep")
      tell(ref, 10)
      ref:tell("wait")
      tell(ref, 9995)
      kit():settle()
      tell(ref, 10)
      assert.are.equal(10005, kit().system:stats().queued)
      kit():advance(1)
      assert.are.equal(1, #depths(ref))

      tell(ref, 10000)
      kit():settle()

      assert.are.equal(2, #depths(ref))
    end)
  end)
end)
