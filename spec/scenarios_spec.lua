--- What has gone wrong in runtimes like this one, tried on this one.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

local function echo(actor, message) actor:reply(message) end

--- Where a loop that ought to end by itself is ended, so that its test fails and does not hang.
local FOR_EVER = 10000

describe("known troubles", function()
  local kit = new_kit.each(before_each, after_each)

  --- An actor that does what it is told with a function, and lists all else in `seen`.
  local function spawn_worker(seen, name, options)
    return kit().system:spawn(function(actor, message)
      if type(message) == "function" then return message(actor) end
      seen[#seen + 1] = message
    end, name, options)
  end

  --- The ref of an actor that is suspended in its handler until `ms` have passed.
  local function spawn_busy(seen, ms, options)
    local ref = kit().system:spawn(function(_, message)
      seen[#seen + 1] = message
      troupe.sleep(ms)
    end, nil, options)
    ref:tell(0)
    kit():settle()
    return ref
  end

  local function collect(kind, field)
    local list = {}
    kit().system.events:subscribe(function(event) list[#list + 1] = event[field] end, kind)
    return list
  end

  --- What the engine and Lua hold when `act` has been called `n` times.
  local function held_after(act, n)
    for _ = 1, n do
      act()
      kit():settle()
    end
    collectgarbage()
    collectgarbage()
    local stats = kit().system:stats()
    return { stats.engine_bytes, stats.anchored, collectgarbage("count") * 1024 }
  end

  --- Fails when `act`, which does something a hundred times, leaves anything behind. What Lua holds
  --- may differ by a table that has grown, by less than a value for each.
  local function assert_leaves_nothing(act)
    held_after(act, 50)
    local before = held_after(act, 50)

    local after = held_after(act, 50)

    assert.are.same({ before[1], before[2] }, { after[1], after[2] })
    local more = after[3] - before[3]
    assert.is_true(more < 50 * 100 * 8, ("%d bytes more"):format(more))
  end

  --- Fails when `act(10000)` takes more time for each than `act(1000)`.
  local function assert_linear(act)
    local function cost(n, rounds)
      local began = os.clock()
      for _ = 1, rounds do
        act(n)
        kit():settle()
      end
      return os.clock() - began
    end
    cost(1000, 1)
    local few, many = cost(1000, 10), cost(10000, 1)
    assert.is_true(many < 4 * few, ("%g s against %g s"):format(many, few))
  end

  describe("with timers", function()
    it("TMR-6 schedule_every with an initial delay of 0 calls once then, and not twice", function()
      local called_at = {}
      local timer = kit().system:schedule_every(1000, function()
        called_at[#called_at + 1] = kit():now()
      end, 0)

      kit():settle()
      assert.are.same({ 0 }, called_at)
      kit():advance(1000)
      timer:cancel()

      assert.are.same({ 0, 1000 }, called_at)
    end)

    it("TMR-1 lets another actor cancel, and takes a cancel when the own one has gone", function()
      local seen, timers = {}, nil
      local owner = spawn_worker(seen)
      owner:tell(function(actor)
        timers = actor.timers
        timers:start_single("a", "a", 10)
        timers:start_single("b", "b", 10)
      end)
      kit():settle()
      local cancelled = kit().system:spawn(function(actor) actor:reply(timers:cancel("a")) end)

      assert.is_true((cancelled:ask("cancel")))
      owner:stop()
      kit():settle()
      collectgarbage()

      assert.is_false(timers:cancel("b"))
      assert.is_false(timers:is_active("b"))
      timers:cancel_all()
      kit():advance(10)
      assert.are.same({}, seen)
    end)

    it("STASH-1 sets a tick aside as the message that it was, and gives it back once", function()
      local payload, seen = {}, {}
      local ref = kit().system:spawn({
        pre_start = function(actor) actor.timers:start_single("key", payload, 10) end,
        receive = function(actor, message)
          if message ~= "open" then return actor:stash() end
          actor:become(function(_, later) seen[#seen + 1] = later end)
          actor:unstash_all()
        end,
      })
      kit():advance(10)

      ref:tell("open")
      kit():advance(100)

      assert.are.equal(1, #seen)
      assert.is_true(rawequal(payload, seen[1]))
    end)

    it("TK-1 gives log records the time of the system's clock", function()
      local times = {}
      kit { log = function(record) times[#times + 1] = { kit():now(), record.time * 1000 } end }
      local gone = kit().system:spawn(ignore)
      gone:stop()
      kit().system:spawn(function(actor)
        troupe.sleep(10)
        actor.log:info("slept")
        troupe.sleep(10)
        gone:tell("a dead letter")
        troupe.sleep(10)
        error("a failure")
      end):tell("go")

      kit():advance(30)

      assert.are.same({ { 10, 10 }, { 20, 20 }, { 30, 30 } }, times)
    end)
  end)

  describe("with supervision", function()
    it("LIFE-3 tells the watchers of one that could never start, and runs no other hook", function()
      local seen = {}
      local function note(name) return function() seen[#seen + 1] = name end end
      local never = kit().system:spawn({
        pre_start = function()
          seen[#seen + 1] = "pre_start"
          troupe.sleep(1)
          error("never")
        end,
        receive = note "receive",
        pre_restart = note "pre_restart",
        post_stop = note "post_stop",
      }, "never", { supervisor_strategy = troupe.one_for_one { max_restarts = 1 } })
      kit().system:spawn({
        pre_start = function(actor) actor:watch(never) end,
        receive = note "terminated",
      })
      never:tell("mail")

      kit():advance(10)

      assert.are.same({ "pre_start", "pre_start", "terminated" }, seen)
    end)

    it("LIFE-3 gives one up that started, and then fails in every restart", function()
      local starts = 0
      local ref = kit().system:spawn({
        pre_start = function()
          starts = starts + 1
          if starts > 1 then error("not again") end
        end,
        receive = function() error("a failure") end,
      }, "name", { supervisor_strategy = troupe.one_for_one { max_restarts = 3 } })
      ref:tell("fail")
      local asked = kit():async(function() return ref:ask("anyone?", 60000) end)

      assert.are.equal(4, starts)
      assert.is_true(troupe.is_error(select(2, asked:await()), "ActorStoppedError"))
      assert.are.equal(0, kit():now())
      assert.are.equal("name", kit().system:spawn(ignore, "name").name)
    end)
  end)

  describe("with stopping", function()
    it("STOP-5 is over when the grace is, though a leaf's post_stop is not", function()
      local ref = kit().system:spawn({
        pre_start = function(actor)
          actor:spawn({ receive = ignore, post_stop = function() troupe.sleep(100) end })
        end,
        receive = ignore,
      })
      kit():settle()
      local stopping = kit():async(function() return troupe.graceful_stop(ref, 10) end)

      kit():advance(10)
      assert.are.equal("done", stopping:status())
      assert.is_false(stopping:await())
      assert.are.equal(2, kit().system:stats().actors)
      kit():advance(90)

      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("STOP-2 lets the handler that stops its actor wait, and no other message come", function()
      local seen, letters = {}, collect("dead_letter", "message")
      local other = kit().system:spawn(echo)
      local ref = kit().system:spawn(function(actor, message)
        seen[#seen + 1] = message
        actor:stop()
        troupe.sleep(10)
        seen[#seen + 1] = other:ask("answer")
      end)
      for i = 1, 5 do ref:tell(i) end

      kit():advance(10)

      assert.are.same({ 1, "answer" }, seen)
      assert.are.same({ 2, 3, 4, 5 }, letters)
    end)

    --- By name: how to end the actor that has post_stop; `parent` is the actor above it.
    local ends = {
      ["ref:stop"] = function(ref) ref:stop() end,
      ["PoisonPill"] = function(ref) ref:tell(troupe.PoisonPill) end,
      ["stop of itself"] = function(ref) ref:tell(function(actor) actor:stop() end) end,
      ["stop by its parent"] = function(ref, parent)
        parent:tell(function(actor) actor:stop(ref) end)
      end,
      ["stop of its parent"] = function(_, parent) parent:stop() end,
      ["stop while it waits"] = function(ref, parent)
        ref:tell(function() troupe.sleep(10000) end)
        kit():settle()
        parent:tell(function(actor) actor:stop(ref) end)
      end,
      ["stop twice"] = function(ref, parent)
        ref:stop()
        parent:stop()
      end,
      ["a failure"] = function(ref) ref:tell(function() error("a failure") end) end,
      ["a kill"] = function(ref) ref:kill() end,
      ["a kill while it waits"] = function(ref)
        ref:tell(function() troupe.sleep(10000) end)
        kit():settle()
        ref:kill()
      end,
      ["a stop, then a failure"] = function(ref)
        ref:tell(function(actor)
          actor:stop()
          error("a failure")
        end)
      end,
      ["terminate"] = function() kit().system:terminate() end,
      ["terminate while it waits"] = function(ref)
        ref:tell(function() troupe.sleep(10000) end)
        kit():settle()
        kit().system:terminate()
      end,
    }

    for name, act in pairs(ends) do
      it("STOP-4 runs post_stop once: " .. name, function()
        local stops, ref = 0, nil
        local parent = kit().system:spawn({
          pre_start = function(actor)
            ref = actor:spawn({
              receive = function(own, message) message(own) end,
              post_stop = function() stops = stops + 1 end,
            }, nil, { supervisor_strategy = troupe.stopping_strategy })
          end,
          receive = function(actor, message) message(actor) end,
        })
        kit():settle()

        act(ref, parent)
        kit():advance(1)

        assert.are.equal(1, stops)
        assert.are.equal("stopped", kit().system:inspect(ref).state)
      end)
    end

    it("SYS-5 lets a post_stop sleep, ask and start timers while the system ends", function()
      local seen = {}
      local system = kit().system
      local other = system:spawn(echo)
      system:spawn({
        receive = ignore,
        post_stop = function(actor)
          troupe.sleep(10)
          seen[1] = kit():now()
          actor.timers:start_single("key", "tick", 1)
          seen[2] = select(2, other:ask("anyone?")).name
          troupe.sleep(10)
          seen[3] = kit():now()
        end,
      })
      kit():settle()

      system:terminate()

      assert.are.same({ 10, "SystemTerminatedError", 20 }, seen)
      assert.are.equal(0, system:stats().timers)
    end)

    it("SYS-8 keeps no file and no memory of a hundred systems that have ended", function()
      local function open_files()
        local pipe = assert(io.popen("ls /proc/$PPID/fd | wc -l"))
        local n = pipe:read("n")
        pipe:close()
        return n
      end
      local function live(n)
        for _ = 1, n do
          local system <close> = troupe.system("short", { log_level = "off" })
          for _ = 1, 10 do system:spawn(ignore):tell("mail") end
          system:spawn(troupe.Router.scatter_gather_first_completed(3, echo)):ask("a question")
          system:run()
        end
        collectgarbage()
        collectgarbage()
        return { open_files(), collectgarbage("count") }
      end
      live(10)

      local few, many = live(10), live(100)

      assert.are.equal(few[1], many[1])
      assert.is_true(many[2] - few[2] < 100, ("%g KB more"):format(many[2] - few[2]))
    end)
  end)

  describe("with watching", function()
    it("WATCH-2 tells once of one that was watched, not watched, and watched again", function()
      local seen = {}
      local alive, dead = kit().system:spawn(ignore, "alive"), kit().system:spawn(ignore, "dead")
      dead:stop()
      kit():settle()
      local watcher = kit().system:spawn(function(actor, message)
        if message ~= "watch" then
          seen[#seen + 1] = message.actor.name
          return
        end
        for _, target in ipairs { alive, dead } do
          actor:watch(target)
          actor:unwatch(target)
          actor:watch(target)
        end
      end)
      watcher:tell("watch")
      kit():settle()
      alive:stop()

      kit():settle()

      assert.are.same({ "dead", "alive" }, seen)
    end)

    it("WATCH-1 tells two that watch each other once each", function()
      local seen = {}
      local function receive(actor, message)
        if not troupe.is(message, troupe.Terminated) then return actor:watch(message) end
        seen[#seen + 1] = actor.name
        actor:stop()
      end
      local a, b = kit().system:spawn(receive, "a"), kit().system:spawn(receive, "b")
      a:tell(b)
      b:tell(a)
      kit():settle()

      a:stop()
      kit():settle()

      assert.are.same({ "b" }, seen)
      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("WATCH-1 passes a death along a chain of 10,000", function()
      local function receive(actor, message)
        if troupe.is(message, troupe.Terminated) then actor:stop() else actor:watch(message) end
      end
      local first = kit().system:spawn(receive)
      local last = first
      for _ = 1, 10000 do
        local before = last
        last = kit().system:spawn(receive)
        last:tell(before)
      end
      kit():settle()
      assert.are.equal(10001, kit().system:stats().actors)

      first:stop()
      kit():settle()

      assert.are.equal(0, kit().system:stats().actors)
    end)

    it("WATCH-1 keeps nothing of actors that were watched and have stopped", function()
      local watcher = kit().system:spawn(function(actor, message)
        if message == "watch" then
          for _ = 1, 100 do actor:stop(actor:watch(actor:spawn(ignore))) end
        end
      end)

      assert_leaves_nothing(function() watcher:tell("watch") end)
    end)

    it("WATCH-2 keeps nothing of watches that were taken back", function()
      local watcher, target = spawn_worker({}), kit().system:spawn(ignore)

      assert_leaves_nothing(function()
        watcher:tell(function(actor)
          for _ = 1, 100 do
            actor:watch(target)
            actor:unwatch(target)
          end
        end)
      end)
    end)

    it("WATCH-4 keeps nothing of watchers that have stopped", function()
      local target = kit().system:spawn(ignore)
      local function watch_and_stop(actor)
        actor:watch(target)
        actor:stop()
      end

      assert_leaves_nothing(function()
        for _ = 1, 100 do kit().system:spawn(watch_and_stop):tell("go") end
      end)
    end)

    it("WATCH-1 lets a gate pass over a waiter that has stopped", function()
      local through = {}
      local gate = kit().system:spawn({
        pre_start = function(actor) actor.waiting = {} end,
        receive = function(actor, message)
          if troupe.is(message, troupe.Terminated) then
            for i, waiter in ipairs(actor.waiting) do
              if waiter.ref == message.actor then return table.remove(actor.waiting, i) end
            end
          elseif message == "release" then
            table.remove(actor.waiting, 1).reply_to:tell("pass")
          else
            table.insert(actor.waiting, { ref = actor:watch(message), reply_to = actor.sender })
          end
        end,
      })
      local waiters = {}
      for i = 1, 3 do
        waiters[i] = kit().system:spawn(function(actor)
          gate:ask(actor.ref, 60000)
          through[#through + 1] = i
        end, nil, { supervisor_strategy = troupe.stopping_strategy })
        waiters[i]:tell("go")
        kit():settle()
      end

      waiters[2]:kill()
      kit():settle()
      gate:tell("release")
      gate:tell("release")
      kit():settle()

      assert.are.same({ 1, 3 }, through)
    end)
  end)

  describe("with names", function()
    for how, act in pairs {
      ["a stop"] = function(ref) ref:stop() end,
      ["a kill"] = function(ref) ref:kill() end,
    } do
      it("PATH-5 looks up, asks and takes a name in the turn of " .. how, function()
        local system = kit().system
        local options = { supervisor_strategy = troupe.stopping_strategy }
        local first = system:spawn(ignore, "name", options)
        kit():settle()
        local seen = {}
        local task = kit():async(function()
          act(first)
          seen[1] = pcall(system.spawn, system, ignore, "name")
          local found = system:actor_selection("/user/name"):resolve()
          seen[2] = select(2, (found[1] or first):ask("anyone?", 60000)).name
        end)

        task:await()

        assert.are.same({ false, "ActorStoppedError" }, seen)
        assert.are.equal(0, kit():now())
        assert.are_not.equal(first, system:spawn(ignore, "name"))
      end)
    end

    it("PATH-5 keeps nothing of names that were used once", function()
      local used = 0

      assert_leaves_nothing(function()
        for _ = 1, 100 do
          used = used + 1
          kit().system:spawn(ignore, "name-" .. used):stop()
        end
      end)
    end)
  end)

  describe("with mailboxes", function()
    it("MBX-2 refuses a capacity that is no integer of at least 1", function()
      for _, wrong in ipairs { 0, -1, 1.5, 0 / 0, 1 / 0, "3", true } do
        local options = { mailbox = { capacity = wrong } }
        local message = raised_here(function() kit().system:spawn(ignore, nil, options) end)
        assert.matches("mailbox.capacity must be an integer", message, 1, true)
      end
    end)

    it("MBX-3 rejects what the handler of another tells, and fails its ask, at once", function()
      local full = spawn_busy({}, 1000, { mailbox = { capacity = 1, overflow = "reject" } })
      local told, why
      kit().system:spawn(function()
        told = { full:tell(1) or false, full:tell(2) or false, full:tell(3) or false }
        why = select(2, full:ask(4, 60000))
      end):tell("go")

      kit():settle()

      assert.are.same({ true, false, false }, told)
      assert.is_true(troupe.is_error(why, "MailboxFullError"))
      assert.are.same({}, kit().logs)
    end)

    for policy, expected in pairs {
      ["drop-head"] = { { 0, 4, 5, 6 }, { 1, 2, 3 } },
      ["drop-new"] = { { 0, 1, 2, 3 }, { 4, 5, 6 } },
      ["reject"] = { { 0, 1, 2, 3 }, { 4, 5, 6 } },
    } do
      it("MBX-3 spares the message in hand, and sheds the right ones: " .. policy, function()
        local handled, dropped = {}, collect("message_dropped", "message")
        local ref = spawn_busy(handled, 10, { mailbox = { capacity = 3, overflow = policy } })
        for i = 1, 6 do ref:tell(i) end

        kit():advance(100)

        assert.are.same(expected, { handled, dropped })
      end)
    end

    it("MBX-5 sheds no death notice that was set aside", function()
      local seen = {}
      local target = kit().system:spawn(ignore)
      local ref = kit().system:spawn(function(actor, message)
        if message == "watch" then
          actor:watch(target)
        elseif message == "open" then
          actor:become(function(_, later) seen[#seen + 1] = later end)
          actor:unstash_all()
          troupe.sleep(10)
        else
          actor:stash()
        end
      end, nil, { mailbox = { capacity = 1 } })
      ref:tell("watch")
      kit():settle()
      target:stop()
      kit():settle()
      ref:tell("open")
      kit():settle()

      ref:tell("shed")
      ref:tell("kept")
      kit():advance(10)

      assert.are.equal(2, #seen)
      assert.is_true(troupe.is(seen[1], troupe.Terminated))
      assert.are.equal("kept", seen[2])
    end)

    it("STASH-1 lets others run when all is set aside and put back for ever", function()
      local rounds, rounds_before_mail = 0, nil
      local ref = kit().system:spawn(function(actor)
        rounds = rounds + 1
        if rounds == FOR_EVER then return end
        actor:stash()
        actor:unstash_all()
      end)
      ref:tell("again")
      kit().system:spawn(function() rounds_before_mail = rounds end):tell("mail")

      kit():settle()

      assert.are.equal(32, rounds_before_mail)
    end)

    it("STASH-1 costs the same for each, however much is set aside", function()
      assert_linear(function(n)
        local handled = 0
        local ref = kit().system:spawn(function(actor, message)
          if message ~= "open" then return actor:stash() end
          actor:become(function(_, i)
            handled = handled + 1
            assert(i == handled)
          end)
          actor:unstash_all()
        end, nil, { stash_capacity = n })
        for i = 1, n do ref:tell(i) end
        ref:tell("open")
        ref:tell(n + 1)
        ref:stop()
        kit():settle()
        assert.are.equal(n + 1, handled)
      end)
    end)
  end)

  describe("with dead letters", function()
    it("DL-3 loses the letters that a subscriber's full mailbox sheds, and no others", function()
      local heard = {}
      local busy = spawn_busy(heard, 1000, { mailbox = { capacity = 1, overflow = "reject" } })
      local gone = kit().system:spawn(ignore)
      gone:stop()
      kit():settle()
      kit().system.events:subscribe(busy, "dead_letter")
      local letters = collect("dead_letter", "message")

      for i = 1, 5 do gone:tell(i) end
      kit():advance(5000)

      assert.are.same({ 1, 2, 3, 4, 5 }, letters)
      assert.are.equal(2, #heard) -- what it was busy with, and the letter it had room for
    end)

    it("DL-2 bears a storm: few lines, an exact count, and the memory is given back", function()
      local gone = kit().system:spawn(ignore)
      gone:stop()
      kit():settle()
      local function storm(n)
        for i = 1, n do gone:tell(i) end
        kit():advance(10000)
        collectgarbage()
        return kit().system:stats().engine_bytes
      end
      local before = storm(1000)

      local after = storm(50000)

      assert.are.equal(22, #kit().logs)
      assert.matches("^49990 more dead letters", kit().logs[22].message)
      assert.are.equal(before, after)
      storm(3)
      assert.are.equal(25, #kit().logs)
    end)

    it("EVT-1 forgets a thousand actors that have stopped without unsubscribing", function()
      local events = kit().system.events
      local stay = spawn_worker({})
      events:subscribe(stay, "mine")
      for _ = 1, 1000 do
        local ref = kit().system:spawn(ignore)
        events:subscribe(ref, "mine")
        ref:stop()
      end
      kit():settle()
      assert.is_true(events:wants("mine"))

      stay:stop()
      kit():settle()

      assert.is_false(events:wants("mine"))
    end)
  end)

  describe("with coroutines", function()
    --- By name: closes what holds `held` in a to-be-closed variable while it waits.
    local closings = {
      ["LIFE-9 of a handler whose actor is killed"] = function(wait)
        local ref = kit().system:spawn(wait)
        ref:tell("wait")
        kit():settle()
        ref:kill()
      end,
      ["LIFE-9 of a handler whose system ends"] = function(wait)
        kit().system:spawn(wait):tell("wait")
        kit():settle()
        kit().system:terminate()
      end,
      ["ASK-11 of a task that is cancelled"] = function(wait)
        kit():async(wait):cancel()
      end,
      ["SYS-5 of a task whose system ends"] = function(wait)
        kit():async(wait)
        kit().system:terminate()
      end,
    }

    for name, close in pairs(closings) do
      it(name .. ": __close can tell, and cannot wait", function()
        local seen = {}
        kit { drain_timeout_ms = 0 }
        local letters = collect("dead_letter", "message")
        local other = kit().system:spawn(function(_, message) seen[#seen + 1] = message end)
        local held = setmetatable({}, { __close = function()
          other:tell("told")
          seen[#seen + 1] = pcall(troupe.sleep, 10)
          seen[#seen + 1] = pcall(other.ask, other, "asked")
        end })

        close(function()
          local _ <close> = held
          while true do troupe.sleep(10000) end
        end)
        kit():settle()

        assert.are.same({ false, false, "told" }, { seen[1], seen[2], seen[3] or letters[1] })
        assert.are.equal(0, kit().system:stats().parked)
      end)
    end

    --- By name: has `act` called there, once.
    local places = {
      ["a handler"] = function(system, act) system:spawn(act):tell("go") end,
      ["pre_start"] = function(system, act) system:spawn({ pre_start = act, receive = ignore }) end,
      ["post_stop"] = function(system, act)
        system:spawn({ post_stop = act, receive = ignore }):stop()
      end,
      ["a coroutine inside a handler"] = function(system, act)
        system:spawn(function() coroutine.wrap(act)() end):tell("go")
      end,
      ["__close"] = function(system, act)
        local held = setmetatable({}, { __close = act })
        system:spawn(function() local _ <close> = held end):tell("go")
      end,
      ["a finalizer inside a handler"] = function(system, act)
        system:spawn(function()
          setmetatable({}, { __gc = act })
          collectgarbage()
        end):tell("go")
      end,
      ["a task"] = function(system, act) system:go(act) end,
      ["a function of a timer"] = function(system, act) system:schedule_once(0, act) end,
      ["a subscriber"] = function(system, act)
        system.events:subscribe(act, "actor_stopped")
        system:spawn(ignore):stop()
      end,
      ["a decider"] = function(system, act)
        system:spawn(error, nil, { supervisor_strategy = troupe.one_for_one {
          decider = function()
            act()
            return "stop"
          end,
        } }):tell("go")
      end,
      ["a strategy"] = function(system, act)
        system:spawn(troupe.Router.custom(1, ignore, function()
          act()
          return {}
        end)):tell("go")
      end,
    }

    for name, place in pairs(places) do
      it("LIFE-10 raises when the loop is entered again, and loses nothing: " .. name, function()
        local system, refused, handled = kit().system, {}, 0
        local called = false
        place(system, function()
          if called then return end
          called = true
          for i, drive in ipairs { system.run, kit().settle, kit().advance } do
            refused[i] = not pcall(drive, i == 1 and system or kit(), 10)
          end
        end)
        for _ = 1, 100 do system:spawn(function() handled = handled + 1 end):tell("mail") end

        kit():settle()

        assert.are.same({ true, true, true }, refused)
        assert.are.equal(100, handled)
        assert.are.equal(0, kit():now())
      end)

      it("SYS-4 begins the end of the system wherever it is called: " .. name, function()
        local system, goes_on = kit().system, false
        place(system, function()
          system:terminate()
          goes_on = true
        end)

        kit():settle()

        assert.is_true(goes_on)
        assert.are.equal(0, system:stats().actors)
        assert.is_false(pcall(system.spawn, system, ignore))
      end)
    end

    for name, place in pairs {
      ["the reader of load"] = function(ask) assert(load(function() ask() end)) end,
      ["an xpcall handler"] = function(ask)
        local why
        xpcall(error, function() why = select(2, pcall(ask)) end)
        error(why, 0)
      end,
    } do
      it("ASK-2 raises behind " .. name .. ", and sends nothing", function()
        local seen = {}
        local target = spawn_worker(seen)
        local why
        kit().system:spawn(function()
          why = select(2, pcall(place, function() target:ask("hello") end))
        end):tell("go")

        kit():settle()

        assert.matches("ask: cannot wait here", tostring(why), 1, true)
        assert.are.same({}, seen)
      end)
    end

    it("ERR-2 keeps nothing of calls that were wrong", function()
      local system, ref = kit().system, kit().system:spawn(echo)
      local timer = system:schedule_once(1, ignore)
      local task = system:go(ignore)
      local calls = {
        { ref.tell, 1 }, { ref.tell, ref, 1, 1 }, { ref.ask, ref, 1, -1 }, { ref.ask, 1 },
        { ref.stop, 1 }, { ref.kill, 1 }, { ref.await_stop, ref, 0 }, { troupe.sleep, "x" },
        { troupe.sleep, 1 }, { troupe.graceful_stop, ref, 0 / 0 }, { system.spawn, system, 1 },
        { system.spawn, system, ignore, "a/b" }, { system.go, system, 1 }, { system.run, 1 },
        { system.schedule_once, system, -1, ignore }, { system.stats, 1 }, { timer.cancel, 1 },
        { system.schedule_every, system, 1, 1 }, { task.await, task, -1 }, { task.cancel, 1 },
        { system.actor_selection, system, 1 }, { system.inspect, system, 1 },
        { troupe.error, 1 }, { troupe.one_for_one, { decider = 1 } },
        { troupe.Router.round_robin, 0, ignore }, { system.events.subscribe, system.events, 1 },
      }

      assert_leaves_nothing(function()
        for i = 1, 100 do
          local call = calls[i % #calls + 1]
          assert(not pcall(table.unpack(call, 1, 4)))
        end
      end)
      assert.are.equal("hello", (ref:ask("hello")))
    end)
  end)
end)
