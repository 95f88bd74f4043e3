local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

describe("priorities", function()
  local kit = new_kit.each(before_each, after_each)

  local function as_it_is(message) return message end
  local function alike() return 0 end

  --- An actor with that priority function and the other options of a mailbox, and the list of what
  --- it handles.
  local function ranked(priority, mailbox, name)
    local seen, options = {}, { priority = priority }
    for key, value in pairs(mailbox or {}) do options[key] = value end
    local ref = kit().system:spawn(function(_, message) seen[#seen + 1] = message end, name,
      { mailbox = options })
    return ref, seen
  end

  local function tell_all(ref, messages)
    for _, message in ipairs(messages) do ref:tell(message) end
  end

  --- What an actor with that priority function handles of those messages, told at once.
  local function handled(priority, messages, mailbox)
    local ref, seen = ranked(priority, mailbox)
    tell_all(ref, messages)
    kit():settle()
    return seen
  end

  --- What was logged by or about priority functions.
  local function complaints()
    local found = {}
    for _, record in ipairs(kit().logs) do
      if record.message:find("^priority") then found[#found + 1] = record end
    end
    return found
  end

  local function list_dropped()
    local dropped = {}
    kit().system.events:subscribe(function(event)
      dropped[#dropped + 1] = event.policy .. " " .. tostring(event.message)
    end, "message_dropped")
    return dropped
  end

  describe("order", function()
    it("MBX-7 handles the lowest first", function()
      assert.are.same({ -1, 1, 3, 3.5, 4, 9 }, handled(as_it_is, { 4, 9, 3.5, -1, 3, 1 }))
    end)

    it("MBX-7 handles equal ranks in the order of their arrival", function()
      local function length(message) return #message end

      assert.are.same({ "a", "b", "aa", "bb", "cc" },
        handled(length, { "aa", "a", "bb", "b", "cc" }))
    end)

    it("MBX-7 takes the infinities as ranks", function()
      assert.are.same({ -math.huge, 1, math.huge }, handled(as_it_is, { math.huge, 1, -math.huge }))
    end)

    it("MBX-7 lets what comes later overtake what waits", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message)
        seen[#seen + 1] = message
        if message == 0 then troupe.sleep(10) end
      end, nil, { mailbox = { priority = as_it_is } })
      tell_all(ref, { 0, 7, 8 })
      kit():settle()

      tell_all(ref, { 9, 1 })
      kit():advance(10)

      assert.are.same({ 0, 1, 7, 8, 9 }, seen)
    end)

    it("MBX-7 ranks what a handler tells before the next one handles any of it", function()
      local ref, seen = ranked(as_it_is)
      kit().system:spawn(function() tell_all(ref, { 3, 1, 2 }) end):tell("go")
      kit():settle()

      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 gives the function any message, unchanged", function()
      local asked, fresh = {}, {}
      local ref = ranked(function(message)
        asked[#asked + 1] = message == nil and "nil" or message
        return 0
      end)
      for _, message in ipairs { false, "text", fresh, 1.5 } do ref:tell(message) end
      ref:tell(nil)
      kit():settle()

      assert.are.same({ false, "text", fresh, 1.5, "nil" }, asked)
      assert.are.equal(fresh, asked[3])
    end)

    it("MBX-7 takes what can be called as a function", function()
      local callable = setmetatable({}, { __call = function(_, message) return -message end })

      assert.are.same({ 3, 2, 1 }, handled(callable, { 1, 2, 3 }))
    end)

    it("MBX-7 delivers a million messages in order", function()
      local n, last = 1000000, 0
      local ref = kit().system:spawn(function(_, message)
        assert(message == last + 1)
        last = message
      end, nil, { mailbox = { priority = as_it_is } })

      for i = 1, n do ref:tell(i * 7919 % n + 1) end
      kit():settle()

      assert.are.equal(n, last)
    end)

    it("MBX-7 costs little more per message when many are queued", function()
      local function seconds_each(n)
        local ref = ranked(as_it_is)
        collectgarbage()
        local began = os.clock()
        for i = 1, n do ref:tell(i * 7919 % n) end
        kit():settle()
        return (os.clock() - began) / n
      end
      seconds_each(10000)

      local small, large = seconds_each(10000), seconds_each(300000)

      assert.is_true(large < 6 * small, ("%.0f ns against %.0f"):format(large * 1e9, small * 1e9))
    end)

    it("MBX-7 gives the memory back when it has drained", function()
      local ref = ranked(as_it_is)
      kit():settle()
      local before = kit().system:stats().engine_bytes

      for i = 1, 100000 do ref:tell(i) end
      local full = kit().system:stats().engine_bytes
      kit():settle()
      local after = kit().system:stats().engine_bytes

      assert.is_true(full - before >= 24 * 100000)
      assert.is_true(after - before <= 4096, ("%d bytes are left"):format(after - before))
    end)
  end)

  describe("a function that fails", function()
    local odd = setmetatable({}, { __tostring = function() error("no text") end })
    local failures = {
      ["raises"] = function() error("no rank") end,
      ["gives nothing"] = function() end,
      ["gives nil"] = function() return nil end,
      ["gives a boolean"] = function() return true end,
      ["gives a string with a number"] = function() return "5" end,
      ["gives a table"] = function() return {} end,
      ["gives what cannot be shown"] = function() return odd end,
      ["gives NaN"] = function() return 0 / 0 end,
      ["sleeps"] = function() troupe.sleep(1) return 0 end,
      ["yields"] = function() coroutine.yield() return 0 end,
      ["runs its system"] = function() kit().system:run() return 0 end,
    }

    for what, fail in pairs(failures) do
      it("MBX-7 ranks a message last for which it " .. what, function()
        local function rank(message)
          if message < 0 then return fail() end
          return message
        end

        assert.are.same({ 1, 2, 3, -1, -2 }, handled(rank, { 3, -1, 1, -2, 2 }))
        assert.are.equal(1, #complaints())
      end)
    end

    it("MBX-7 says which actor, what it gave, and where", function()
      handled(function(message) return message.rank end, { { rank = "high" } })

      local record = complaints()[1]

      assert.are.equal("error", record.level)
      assert.are.equal("troupe://demo/user/$1", tostring(record.path))
      assert.are.equal("priority raised: the priority function must give a number (got string)",
        record.message)
      assert.matches("stack traceback", record.fields.traceback)
    end)

    it("MBX-7 says that NaN is no number", function()
      handled(function() return 0 / 0 end, { 1 })

      assert.matches("got NaN", complaints()[1].message)
    end)

    it("MBX-7 is logged once for each actor, restarts included", function()
      local function spawn()
        return kit().system:spawn(function(_, message)
          if message == "boom" then error(message) end
        end, nil, { mailbox = { priority = error } })
      end
      local first, second = spawn(), spawn()
      for _ = 1, 3 do
        tell_all(first, { "x", "boom", "y" })
        second:tell("x")
        kit():settle()
      end

      assert.are.equal(2, #complaints())
    end)

    it("MBX-7 is published as hook_failed", function()
      local published = {}
      kit().system.events:subscribe(function(event)
        published[#published + 1] = event.hook .. " " .. event.ref.name .. " " .. event.reason.code
      end, "hook_failed")
      local ref = ranked(function() error({ code = "E7" }) end, nil, "a")
      tell_all(ref, { 1, 2 })
      kit():settle()

      assert.are.same({ "priority a E7" }, published)
    end)

    it("MBX-7 never fails who tells", function()
      local ref = ranked(error)
      local outcomes, sender = {}, nil
      local teller = kit().system:spawn(function(actor)
        outcomes[1] = ref:tell("from a handler")
        outcomes[2] = actor.sender == sender
      end)
      sender = kit().system:spawn(function() end)

      outcomes[3] = ref:tell("from the main chunk")
      teller:tell("go", sender)
      kit().system:go(function() outcomes[4] = ref:tell("from a task") end)
      coroutine.wrap(function() outcomes[5] = ref:tell("from a coroutine") end)()
      kit():settle()

      assert.are.same({ true, true, true, true, true }, outcomes)
    end)

    it("MBX-7 may not wait, wherever it is told from", function()
      local other = kit().system:spawn(function(actor) actor:reply("answer") end)
      local ref, seen = ranked(function(message)
        if message == "wait" then return other:ask("x") and 0 end
        return 1
      end)
      local function tell() tell_all(ref, { "wait", "go" }) end

      tell()
      kit():settle()
      kit():async(tell)
      kit().system:spawn(tell):tell("x")
      kit():settle()
      coroutine.wrap(tell)()
      kit():settle()

      assert.are.same({ "go", "wait", "go", "wait", "go", "wait", "go", "wait" }, seen)
      assert.are.equal(0, kit():now())
    end)
  end)

  describe("a function that tells", function()
    it("MBX-7 may tell other actors with priorities", function()
      local second, seen = ranked(as_it_is)
      local first = ranked(function(message)
        second:tell(message)
        return message
      end)
      tell_all(first, { 3, 1, 2 })
      kit():settle()

      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 may tell its own actor", function()
      local ref, seen
      ref, seen = ranked(function(message)
        if message > 1 then ref:tell(message - 1) end
        return message
      end)
      ref:tell(1000)
      kit():settle()

      assert.are.equal(1000, #seen)
      assert.are.same({ 1, 2, 3 }, { table.unpack(seen, 1, 3) })
    end)

    it("MBX-7 may be one of a long chain of such functions", function()
      local refs, seen = {}, nil
      for i = 1, 300 do
        refs[i], seen = ranked(function(message)
          if refs[i + 1] then refs[i + 1]:tell(message) end
          return message
        end)
      end

      assert.is_true(refs[1]:tell(7))
      kit():settle()

      assert.are.same({ 7 }, seen)
    end)

    it("MBX-7 may be that of another system's actor", function()
      local other = require("troupe.testkit").system("other")
      local seen = {}
      local ref = other.system:spawn(function(_, message) seen[#seen + 1] = message end, nil,
        { mailbox = { priority = as_it_is } })
      kit().system:spawn(function() tell_all(ref, { 2, 1 }) end):tell("go")
      kit():settle()
      other:settle()

      assert.are.same({ 1, 2 }, seen)
      other.system:terminate()
    end)
  end)

  describe("with a bound", function()
    it("MBX-7 sheds what ranks last, unless something else is said", function()
      local dropped = list_dropped()

      assert.are.same({ 1, 2 }, handled(as_it_is, { 3, 1, 9, 2 }, { capacity = 2 }))
      assert.are.same({ "drop-lowest 9", "drop-lowest 3" }, dropped)
    end)

    it("MBX-7 sheds the latest of equals", function()
      assert.are.same({ "a", "b" }, handled(alike, { "a", "b", "c" }, { capacity = 2 }))
    end)

    it("MBX-7 sheds what has no rank before all else", function()
      local function rank(message)
        if message == "bad" then error("bad") end
        return 1e300
      end

      assert.are.same({ "a", "b" }, handled(rank, { "a", "bad", "b" }, { capacity = 2 }))
    end)

    it("MBX-7 sheds the newcomer with drop-new, whatever its rank", function()
      local dropped = list_dropped()

      assert.are.same({ 3, 9 },
        handled(as_it_is, { 9, 3, 1 }, { capacity = 2, overflow = "drop-new" }))
      assert.are.same({ "drop-new 1" }, dropped)
    end)

    it("MBX-7 refuses the newcomer with reject, whatever its rank", function()
      local ref, seen = ranked(as_it_is, { capacity = 2, overflow = "reject" })
      tell_all(ref, { 9, 3 })

      local ok, err = ref:tell(1)
      kit():settle()

      assert.is_nil(ok)
      assert.is_true(troupe.is_error(err, "MailboxFullError"))
      assert.are.same({ 3, 9 }, seen)
    end)

    it("MBX-7 holds the bound at each tell", function()
      local ref = ranked(as_it_is, { capacity = 3 })
      local most = 0
      local function tell_many()
        for i = 1, 1000 do
          ref:tell(i)
          most = math.max(most, kit().system:stats().queued)
        end
      end

      tell_many()
      kit():settle()
      kit().system:go(tell_many)
      kit():settle()

      assert.are.equal(3, most)
    end)

    it("MBX-7 holds the bound at each reply", function()
      local ref, seen = ranked(as_it_is, { capacity = 3 })
      local most = 0
      kit().system:spawn(function(actor)
        for i = 1, 1000 do
          actor:reply(i)
          most = math.max(most, kit().system:stats().queued)
        end
      end):tell("go", ref)
      kit():settle()

      assert.are.equal(3, most)
      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 holds the bound at each event that an actor subscribed to", function()
      local ref, seen = ranked(function(event) return event.n end, { capacity = 3 })
      kit().system.events:subscribe(ref, "counted")
      for i = 1000, 1, -1 do kit().system.events:publish("counted", { n = i }) end

      assert.are.equal(3, kit().system:stats().queued)
      kit():settle()
      assert.are.same({ 1, 2, 3 }, { seen[1].n, seen[2].n, seen[3].n })
    end)

    it("MBX-7 holds the bound at each message that is forwarded", function()
      local ref, seen = ranked(as_it_is, { capacity = 3 })
      local most = 0
      local relay = kit().system:spawn(function(actor)
        actor:forward(ref)
        most = math.max(most, kit().system:inspect(ref).queued)
      end)
      for i = 10, 1, -1 do relay:tell(i) end
      kit():settle()

      assert.are.equal(3, most)
      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 fails an ask that is shed, at once", function()
      local ref = kit().system:spawn(function(actor) actor:reply("served") end, nil,
        { mailbox = { priority = as_it_is, capacity = 1 } })
      local function ask(rank) return select(2, ref:ask(rank)) end

      local high, low = kit().system:go(ask, 2), kit().system:go(ask, 1)
      kit():settle()

      assert.is_true(troupe.is_error(high:await(), "MailboxFullError"))
      assert.is_nil(low:await())
      assert.are.equal(0, kit():now())
    end)

    it("MBX-7 fails an ask that is itself the last, at once", function()
      local ref = ranked(as_it_is, { capacity = 1 })
      ref:tell(1)

      local _, err = ref:ask(2)

      assert.is_true(troupe.is_error(err, "MailboxFullError"))
      assert.are.equal(0, kit():now())
    end)

    it("MBX-4 leaves the message in hand out of the count", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message)
        seen[#seen + 1] = message
        troupe.sleep(10)
      end, nil, { mailbox = { priority = as_it_is, capacity = 1 } })
      ref:tell(5)
      kit():settle()

      tell_all(ref, { 7, 6 })
      kit():advance(100)

      assert.are.same({ 5, 6 }, seen)
    end)
  end)

  describe("beside other mail", function()
    it("STOP-1 a stop comes after all that was told before it", function()
      for _, stop in ipairs {
        function(ref) ref:stop() end,
        function(ref) ref:tell(troupe.PoisonPill) end,
      } do
        local ref, seen = ranked(function(message) return message < 0 and error() or message end)
        tell_all(ref, { 3, -1, 1 })
        stop(ref)
        ref:tell(0)
        kit():settle()

        assert.are.same({ 1, 3, -1 }, seen)
        assert.are.equal(0, kit().system:stats().actors)
      end
    end)

    it("STOP-1 no timer keeps a stop from coming", function()
      local seen = {}
      local ref = kit().system:spawn({
        pre_start = function(actor) actor.timers:start_fixed_rate("tick", 0, 5) end,
        receive = function(_, message)
          seen[#seen + 1] = message
          troupe.sleep(10)
        end,
      }, nil, { mailbox = { priority = as_it_is } })
      kit():settle()

      tell_all(ref, { 2, 1 })
      ref:stop()
      kit():advance(100)

      assert.are.same({ 1, 2 }, seen)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("SUP-11 Kill comes in its turn, after all that was told before it", function()
      local seen = {}
      local ref = kit().system:spawn({
        receive = function(_, message) seen[#seen + 1] = message end,
        post_restart = function() seen[#seen + 1] = "restarted" end,
      }, nil, { mailbox = { priority = as_it_is } })
      ref:tell(troupe.Kill)
      tell_all(ref, { 2, 1 })
      kit():settle()

      assert.are.same({ 1, 2, "restarted" }, seen)
    end)

    it("WATCH-1 a death notice comes after all that the dead had told", function()
      local seen = {}
      local watcher = kit().system:spawn(function(actor, message)
        if type(message) == "function" then return message(actor) end
        seen[#seen + 1] = troupe.is(message, troupe.Terminated) and "dead" or message
      end, nil, { mailbox = { priority = function() error("last of all") end } })
      local target = kit().system:spawn(function(actor)
        watcher:tell("last words")
        actor:stop()
      end)
      watcher:tell(function(actor) actor:watch(target) end)
      kit():settle()

      target:tell("go")
      kit():settle()

      assert.are.same({ "last words", "dead" }, seen)
    end)

    it("MBX-5 death notices and timer messages are never shed", function()
      local seen = {}
      local dead = kit().system:spawn(function() end)
      local ref = kit().system:spawn({
        pre_start = function(actor)
          actor:watch_with(dead, "dead")
          actor.timers:start_single("tick", 5, 10)
          troupe.sleep(20)
        end,
        receive = function(_, message) seen[#seen + 1] = message end,
      }, nil, { mailbox = { priority = as_it_is, capacity = 1 } })
      kit():settle()
      dead:stop()
      kit():advance(10)

      tell_all(ref, { 9, 8, 7 })
      kit():advance(10)

      assert.are.same({ 5, 7, "dead" }, seen)
    end)

    it("MBX-7 ranks the message of a timer", function()
      local seen = {}
      local ref = kit().system:spawn({
        pre_start = function(actor)
          actor.timers:start_single("low", 1, 10)
          actor.timers:start_single("high", 9, 10)
          troupe.sleep(20)
        end,
        receive = function(_, message) seen[#seen + 1] = message end,
      }, nil, { mailbox = { priority = as_it_is } })
      kit():settle()
      ref:tell(5)
      kit():advance(20)

      assert.are.same({ 1, 5, 9 }, seen)
    end)

    it("TMR-1 a stop that a timer sends comes after all that was told", function()
      local seen = {}
      local ref = kit().system:spawn({
        pre_start = function(actor)
          actor.timers:start_single("stop", troupe.PoisonPill, 10)
          troupe.sleep(20)
        end,
        receive = function(_, message) seen[#seen + 1] = message end,
      }, nil, { mailbox = { priority = error } })
      kit():settle()
      tell_all(ref, { 2, 1 })
      kit():advance(20)

      assert.are.same({ 2, 1 }, seen)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("TMR-7 a receive timeout is not ranked, and comes when there is no mail", function()
      local seen = {}
      local ref = kit().system:spawn({
        pre_start = function(actor) actor:set_receive_timeout(10) end,
        receive = function(_, message)
          seen[#seen + 1] = troupe.is(message, troupe.ReceiveTimeout) and "timeout" or message
        end,
      }, nil, { mailbox = { priority = as_it_is, capacity = 1 } })
      kit():advance(5)
      ref:tell(1)
      kit():advance(10)

      assert.are.same({ 1, "timeout" }, seen)
      assert.are.same({}, complaints())
    end)

    it("MBX-8 a deep mailbox with ranks is warned of, and anew once it has been empty", function()
      local ref = ranked(as_it_is, nil, "deep")
      local function warned(n)
        local before = #kit().logs
        for i = 1, n do ref:tell(i) end
        kit():settle()
        local texts = {}
        for i = before + 1, #kit().logs do texts[#texts + 1] = kit().logs[i].message end
        return texts
      end
      local at_10000 = "10000 messages wait in its mailbox"

      assert.are.same({}, warned(9999))
      assert.are.same({ at_10000, "20000 messages wait in its mailbox" }, warned(25000))
      assert.are.same({ at_10000 }, warned(10000))
    end)

    it("INS-1 an inspection counts what waits, ranked or not", function()
      local ref = ranked(as_it_is, { capacity = 2 })
      tell_all(ref, { 1, 2, 3 })

      local seen = kit().system:inspect(ref)

      assert.are.equal(2, seen.queued)
      assert.are.same({ capacity = 2, overflow = "drop-lowest", dropped = 1 }, seen.mailbox)
    end)

    it("STASH-1 what was set aside comes first, in its order", function()
      local seen, open = {}, false
      local ref = kit().system:spawn(function(actor, message)
        seen[#seen + 1] = message
        if message == 5 then
          open = true
          actor.ref:tell(-1)
          actor:unstash_all()
        elseif not open then
          actor:stash()
        end
      end, nil, { mailbox = { priority = function(n) return n == -1 and -math.huge or n end } })
      tell_all(ref, { 3, 4, 5, 6 })
      kit():settle()

      assert.are.same({ 3, 4, 5, 3, 4, -1, 6 }, seen)
    end)

    it("MBX-7 is the same function after become", function()
      local seen = {}
      local ref = kit().system:spawn(function(actor)
        actor:become(function(_, message) seen[#seen + 1] = message end)
      end, nil, { mailbox = { priority = as_it_is } })
      tell_all(ref, { 0, 3, 1, 2 })
      kit():settle()

      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 keeps the ranks over a restart", function()
      local seen = {}
      local ref = kit().system:spawn(function(_, message)
        if message == 1 then error("boom") end
        seen[#seen + 1] = message
      end, nil, { mailbox = { priority = as_it_is } })
      tell_all(ref, { 3, 1, 2 })
      kit():settle()

      assert.are.same({ 2, 3 }, seen)
    end)

    it("MBX-7 dead letters come in the order in which they would have been handled", function()
      local lost = {}
      kit().system.events:subscribe(function(event) lost[#lost + 1] = event.message end,
        "dead_letter")
      local ref = kit().system:spawn(function(actor) actor:stop() end, nil,
        { mailbox = { priority = as_it_is } })
      tell_all(ref, { 3, 0, 2, 1 })
      kit():settle()

      assert.are.same({ 1, 2, 3 }, lost)
    end)

    it("SYS-5 a system that ends drains it in order", function()
      local ref, seen = ranked(as_it_is)
      tell_all(ref, { 3, 1, 2 })
      kit().system:terminate()

      assert.are.same({ 1, 2, 3 }, seen)
    end)
  end)

  describe("in pools", function()
    it("MBX-7 holds for each routee", function()
      local seen = {}
      local pool = kit().system:spawn(troupe.Router.round_robin(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
      end, { mailbox = { priority = as_it_is, capacity = 2 } }))
      kit():settle()

      tell_all(pool, { 6, 5, 4, 3, 2, 1 })
      kit():settle()

      table.sort(seen)
      assert.are.same({ "routee-1:2", "routee-1:4", "routee-2:1", "routee-2:3" }, seen)
    end)

    it("MBX-7 holds for a router itself", function()
      local seen = {}
      local pool = kit().system:spawn(troupe.Router.round_robin(1, function(_, message)
        seen[#seen + 1] = message
      end), nil, { mailbox = { priority = as_it_is } })
      tell_all(pool, { 3, 1, 2 })
      kit():settle()

      assert.are.same({ 1, 2, 3 }, seen)
    end)

    it("MBX-7 gives the function what the actor gets", function()
      local asked = {}
      local function note(who)
        return function(message)
          local is_broadcast = type(message) == "table"
          asked[#asked + 1] = who .. (is_broadcast and " a broadcast" or " " .. message)
          return 0
        end
      end
      local pool = kit().system:spawn(
        troupe.Router.round_robin(1, function() end, { mailbox = { priority = note "routee" } }),
        nil, { mailbox = { priority = note "router" } })
      pool:tell(troupe.Broadcast("x"))
      kit():settle()

      assert.are.same({ "router a broadcast", "routee x" }, asked)
    end)

    it("MBX-7 ranks what a scatter asks", function()
      local asked = {}
      local pool = kit().system:spawn(troupe.Router.scatter_gather_first_completed(2,
        function(actor, message) actor:reply(message) end, nil,
        { mailbox = { capacity = 1, priority = function(n) asked[#asked + 1] = n return n end } }))

      local answer = kit():async(function() return pool:ask(7) end)

      assert.are.equal(7, answer:await())
      assert.are.same({ 7, 7 }, asked)
    end)
  end)

  describe("options", function()
    local function spawn(mailbox)
      return kit().system:spawn(function() end, nil, { mailbox = mailbox })
    end

    it("MBX-7 refuses what is no function", function()
      local options = { mailbox = { priority = 5 } }
      local text = raised_here(function() kit().system:spawn(function() end, nil, options) end)
      assert.matches("spawn: mailbox%.priority must be a function %(got 5%)", text)
    end)

    it("MBX-7 refuses drop-head with a priority, and drop-lowest without one", function()
      assert.error_matches(function()
        spawn { priority = as_it_is, capacity = 1, overflow = "drop-head" }
      end, 'spawn: mailbox%.overflow must be one of "drop%-lowest", "drop%-new", "reject" '
        .. '%(got "drop%-head"%)')
      assert.error_matches(function() spawn { capacity = 1, overflow = "drop-lowest" } end,
        'spawn: mailbox%.overflow must be one of "drop%-head", "drop%-new", "reject" '
        .. '%(got "drop%-lowest"%)')
    end)

    it("MBX-7 needs no capacity, but a policy does", function()
      spawn { priority = as_it_is }
      assert.error_matches(function() spawn { priority = as_it_is, overflow = "reject" } end,
        "spawn: mailbox%.capacity must be an integer from 1 to 2147483648 %(got nil%)")
    end)

    it("MBX-2 names the caller's line for each option of a mailbox", function()
      local system = kit().system
      local function f() end
      raised_here(function() system:spawn(f, nil, { mailbox = { capacity = 0 } }) end)
      raised_here(function() system:spawn(f, nil, { mailbox = { overflow = "reject" } }) end)
      raised_here(function() system:spawn(f, nil, { mailbox = { capacity = 1, overflow = 1 } }) end)
      raised_here(function() troupe.Router.random(1, f, { mailbox = { capacity = "many" } }) end)
    end)
  end)
end)
