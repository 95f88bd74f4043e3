local troupe = require "troupe"
local new_kit = require "spec.support.kit"

local function ignore() end

describe("lifecycle", function()
  local kit = new_kit.each(before_each, after_each)

  --- A value that writes `text` to `list` when the variable that holds it is closed.
  local function closing(list, text)
    return setmetatable({}, { __close = function() list[#list + 1] = text end })
  end

  --- Writes "stopped" to `list` when the actor stops.
  local function note_stop(ref, list)
    kit().system.events:subscribe(function(event)
      if event.ref == ref then list[#list + 1] = "stopped" end
    end, "actor_stopped")
  end

  it("LIFE-1 finishes pre_start before the first message, also when it waits", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function()
        troupe.sleep(50)
        seen[#seen + 1] = ("started at %g"):format(kit():now())
      end,
      receive = function(_, message) seen[#seen + 1] = message end,
    })
    ref:tell("mail")
    kit():advance(49)
    assert.are.same({}, seen)

    kit():advance(1)

    assert.are.same({ "started at 50", "mail" }, seen)
  end)

  it("LIFE-1 lets pre_start ask", function()
    local system = kit().system
    local registry = system:spawn(function(actor) actor:reply("settings") end)
    local ref = system:spawn({
      pre_start = function(actor) actor.settings = registry:ask("settings?") end,
      receive = function(actor) actor:reply(actor.settings) end,
    })

    assert.are.equal("settings", (ref:ask("which?")))
  end)

  it("LIFE-2 takes the next message when the handler has returned", function()
    local seen = {}
    local ref = kit().system:spawn(function(_, ms)
      seen[#seen + 1] = "begin " .. ms
      troupe.sleep(ms)
      seen[#seen + 1] = "end " .. ms
    end)
    ref:tell(20)
    ref:tell(10)
    kit():advance(30)

    assert.are.same({ "begin 20", "end 20", "begin 10", "end 10" }, seen)
    assert.are.equal(30, kit():now())
  end)

  it("LIFE-2 runs other actors while a handler waits", function()
    local system = kit().system
    local seen = {}
    local function handler(_, ms)
      troupe.sleep(ms)
      seen[#seen + 1] = ms
    end
    system:spawn(handler):tell(30)
    system:spawn(handler):tell(10)
    system:spawn(handler):tell(20)
    kit():advance(30)

    assert.are.same({ 10, 20, 30 }, seen)
  end)

  it("LIFE-2 lets a handler wait inside pcall", function()
    local outcome
    kit().system:spawn(function()
      outcome = table.pack(pcall(function()
        troupe.sleep(10)
        error("after the wait", 0)
      end))
    end):tell("go")
    kit():advance(10)

    assert.are.same({ false, "after the wait", n = 2 }, outcome)
  end)

  it("LIFE-2 lets post_stop wait, and the actor has stopped only then", function()
    local seen = {}
    local ref = kit().system:spawn({
      receive = ignore,
      post_stop = function() troupe.sleep(50) end,
    }, "slow")
    note_stop(ref, seen)
    ref:stop()
    kit():advance(49)
    assert.are.same({}, seen)

    kit():advance(1)

    assert.are.same({ "stopped" }, seen)
  end)

  it("LIFE-2 lets the hooks of a restart wait", function()
    local seen = {}
    local function note(text) seen[#seen + 1] = text .. (" at %g"):format(kit():now()) end
    local ref = kit().system:spawn({
      receive = function(_, message)
        if message == "fail" then error("restart") end
        note(message)
      end,
      pre_restart = function()
        troupe.sleep(10)
        note("pre_restart")
      end,
      post_restart = function()
        troupe.sleep(20)
        note("post_restart")
      end,
    })
    ref:tell("fail")
    ref:tell("mail")
    kit():advance(30)

    assert.are.same({ "pre_restart at 10", "post_restart at 30", "mail at 30" }, seen)
  end)

  it("LIFE-3 treats a failing pre_start as an initialization error with its cause", function()
    local cause = { "no disk" }
    local reason
    kit().system.events:subscribe(function(event) reason = reason or event.reason end,
      "actor_failed")
    kit().system:spawn({ pre_start = function() error(cause) end, receive = ignore })
    kit():settle()

    assert.is_true(troupe.is_error(reason, "ActorInitializationError"))
    assert.is_true(rawequal(cause, reason.cause))
  end)

  it("LIFE-3 tries to start again within the restart budget", function()
    local starts, seen = 0, {}
    local ref = kit().system:spawn({
      pre_start = function()
        starts = starts + 1
        if starts < 3 then error("not yet") end
      end,
      receive = function(_, message) seen[#seen + 1] = message end,
    })
    ref:tell("mail")
    kit():settle()

    assert.are.equal(3, starts)
    assert.are.same({ "mail" }, seen)
  end)

  it("LIFE-3 stops past the budget: mail dead-lettered, name free", function()
    local system = kit().system
    local starts, seen = 0, {}
    system.events:subscribe(function(event) seen[#seen + 1] = event.message end, "dead_letter")
    local ref = system:spawn({
      pre_start = function()
        starts = starts + 1
        troupe.sleep(1)
        error("never")
      end,
      receive = function() seen[#seen + 1] = "handled" end,
    }, "name", { supervisor_strategy = troupe.one_for_one { max_restarts = 2, within_ms = 1000 } })
    note_stop(ref, seen)
    ref:tell("mail")

    kit():advance(1000)

    assert.are.equal(3, starts)
    assert.are.same({ "mail", "stopped" }, seen)
    assert.are.equal("name", system:spawn(ignore, "name").name)
  end)

  it("LIFE-3 grants a start that always fails ten restarts by default", function()
    local starts = 0
    local ref = kit().system:spawn({
      pre_start = function()
        starts = starts + 1
        error("never")
      end,
      receive = ignore,
    })
    kit():settle()

    assert.are.equal(11, starts)
    assert.are.equal(0, kit().system:stats().actors)
    local _, err = ref:ask("anyone?")
    assert.is_true(troupe.is_error(err, "ActorStoppedError"))
  end)

  it("LIFE-4 restarts in order", function()
    local seen = {}
    local function note(text) seen[#seen + 1] = text end
    local ref = kit().system:spawn({
      pre_start = function(actor)
        note("pre_start")
        actor:spawn({ receive = ignore, post_stop = function() note("child stops") end })
      end,
      receive = function(_, message)
        note(message)
        if message == "fail" then error("restart") end
      end,
      pre_restart = function() note("pre_restart") end,
      post_restart = function() note("post_restart") end,
      post_stop = function() note("post_stop") end,
    })
    kit():settle()
    for _, message in ipairs { "a", "fail", "b" } do ref:tell(message) end
    kit():settle()

    assert.are.same(
      { "pre_start", "a", "fail", "pre_restart", "child stops", "post_restart", "b" }, seen)
  end)

  it("LIFE-4 gives pre_restart the old incarnation, the reason and the message", function()
    local reason, message = { "reason" }, { "message" }
    local old, got
    local ref = kit().system:spawn({
      receive = function(actor)
        old = actor
        error(reason)
      end,
      pre_restart = function(...) got = table.pack(...) end,
    })
    ref:tell(message)
    kit():settle()

    assert.are.equal(3, got.n)
    assert.is_true(rawequal(old, got[1]))
    assert.is_true(rawequal(reason, got[2]))
    assert.is_true(rawequal(message, got[3]))
  end)

  it("LIFE-4 gives post_restart the new incarnation and the reason", function()
    local reason = { "reason" }
    local old, got
    local ref = kit().system:spawn({
      receive = function(actor)
        old = actor
        error(reason)
      end,
      post_restart = function(...) got = table.pack(...) end,
    })
    ref:tell("fail")
    kit():settle()

    assert.are.equal(2, got.n)
    assert.is_false(rawequal(old, got[1]))
    assert.are.equal(ref, got[1].ref)
    assert.is_true(rawequal(reason, got[2]))
  end)

  it("LIFE-4 runs post_stop and pre_start when the restart hooks are not given", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor) seen[#seen + 1] = { "pre_start", actor } end,
      receive = function() error("restart") end,
      post_stop = function(actor) seen[#seen + 1] = { "post_stop", actor } end,
    })
    ref:tell("fail")
    kit():settle()

    local names = {}
    for i, entry in ipairs(seen) do names[i] = entry[1] end
    assert.are.same({ "pre_start", "post_stop", "pre_start" }, names)
    assert.is_true(rawequal(seen[1][2], seen[2][2]))
    assert.is_false(rawequal(seen[2][2], seen[3][2]))
  end)

  it("LIFE-4 cancels the timers before pre_restart", function()
    local seen = {}
    local ref = kit().system:spawn({
      receive = function(actor, message)
        seen[#seen + 1] = message
        if message == "fail" then
          actor.timers:start_single("once", "tick", 10)
          actor.timers:start_fixed_delay("again", "tick", 10)
          error("restart")
        end
      end,
      pre_restart = function(actor)
        seen[#seen + 1] = actor.timers:is_active("once") or actor.timers:is_active("again")
      end,
    })
    ref:tell("fail")
    kit():advance(100)

    assert.are.same({ "fail", false }, seen)
    assert.are.equal(0, kit().system:stats().timers)
  end)

  it("LIFE-4 waits for all children to stop before the new incarnation", function()
    local seen = {}
    local function child_that_needs(ms)
      return { receive = ignore, post_stop = function() troupe.sleep(ms) end }
    end
    local ref = kit().system:spawn({
      pre_start = function(actor)
        seen[#seen + 1] = kit():now()
        actor:spawn(child_that_needs(20), "a")
        actor:spawn(child_that_needs(50), "b")
      end,
      receive = function() error("restart") end,
    })
    kit():settle()
    ref:tell("fail")
    kit():advance(100)

    assert.are.same({ 0, 50 }, seen)
    assert.are.equal(3, kit().system:stats().actors)
  end)

  it("LIFE-4 stops the children after pre_restart, which still sees them", function()
    local children
    local ref = kit().system:spawn({
      pre_start = function(actor) actor:spawn(ignore, "kid") end,
      receive = function() error("restart") end,
      pre_restart = function(actor) children = #actor.children end,
    })
    ref:tell("fail")
    kit():settle()

    assert.are.equal(1, children)
  end)

  it("LIFE-4 keeps the mail and delivers the failed message once", function()
    local seen = {}
    local ref = kit().system:spawn(function(actor, n)
      seen[#seen + 1] = n
      if n == 2 then
        actor.ref:tell(6)
        error("restart")
      end
    end)
    for n = 1, 5 do ref:tell(n) end
    kit():settle()

    assert.are.same({ 1, 2, 3, 4, 5, 6 }, seen)
    assert.are.equal(0, kit().system:stats().queued)
  end)

  it("LIFE-4 keeps the mail that arrives during the restart", function()
    local seen = {}
    local ref = kit().system:spawn({
      receive = function(_, message)
        seen[#seen + 1] = message
        if message == "fail" then error("restart") end
      end,
      pre_restart = function() troupe.sleep(50) end,
    })
    ref:tell("fail")
    ref:tell("before")
    kit():advance(10)
    ref:tell("during")
    kit():advance(40)

    assert.are.same({ "fail", "before", "during" }, seen)
  end)

  it("LIFE-4 keeps path and ref, and is no stop", function()
    local seen = {}
    local inside
    local ref = kit().system:spawn(function(actor, message)
      if message == "fail" then error("restart") end
      inside = actor.ref
    end, "name")
    note_stop(ref, seen)
    ref:tell("fail")
    ref:tell("look")
    kit():settle()

    assert.are.equal(ref, inside)
    assert.are.equal("troupe://demo/user/name", tostring(inside.path))
    assert.are.same({}, seen)
  end)

  it("LIFE-5 keeps the children, with state and mail, when told to", function()
    local seen = {}
    local kid
    local ref = kit().system:spawn({
      stop_children_on_restart = false,
      pre_start = function(actor)
        if actor:child("kid") then return end
        kid = actor:spawn(function(me, n)
          me.sum = (me.sum or 0) + n
          seen[#seen + 1] = me.sum
        end, "kid")
      end,
      receive = function()
        kid:tell(10)
        error("restart")
      end,
    })
    kit():settle()
    kid:tell(1)
    kit():settle()

    ref:tell("fail")
    kit():settle()
    kid:tell(100)
    kit():settle()

    assert.are.same({ 1, 11, 111 }, seen)
    assert.are.equal(2, kit().system:stats().actors)
  end)

  --- A top-level actor that fails on "fail" and needs 50 ms for its pre_restart; `seen` gets the
  --- hooks that run.
  local function slow_to_restart(seen)
    return {
      pre_start = function() seen[#seen + 1] = "pre_start" end,
      receive = function(_, message)
        if message == "fail" then error("restart") end
        seen[#seen + 1] = message
      end,
      pre_restart = function() troupe.sleep(50) end,
      post_restart = function() seen[#seen + 1] = "post_restart" end,
    }
  end

  it("LIFE-6 stops instead when a stop arrives during the restart", function()
    local seen = {}
    local ref = kit().system:spawn(slow_to_restart(seen), "name")
    note_stop(ref, seen)
    ref:tell("fail")
    kit():advance(10)

    ref:stop()
    kit():advance(40)

    assert.are.same({ "pre_start", "stopped" }, seen)
    assert.are.equal("name", kit().system:spawn(ignore, "name").name)
  end)

  it("LIFE-6 stops instead when its parent stops it during the restart", function()
    local seen = {}
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor) kid = actor:spawn(slow_to_restart(seen), "kid") end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()
    note_stop(kid, seen)
    kid:tell("fail")
    kit():advance(10)

    parent:tell("stop it")
    kit():advance(40)

    assert.are.same({ "pre_start", "stopped" }, seen)
  end)

  it("LIFE-6 stops instead when a stop arrives while the children stop", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor)
        seen[#seen + 1] = "pre_start"
        actor:spawn({ receive = ignore, post_stop = function() troupe.sleep(50) end })
      end,
      receive = function() error("restart") end,
    })
    note_stop(ref, seen)
    kit():settle()
    ref:tell("fail")
    kit():advance(10)

    ref:stop()
    kit():advance(40)

    assert.are.same({ "pre_start", "stopped" }, seen)
  end)

  --- The one record in the log of the kit that says `text`, with its level, path and traceback.
  local function logged(text)
    local found
    for _, record in ipairs(kit().logs) do
      local fields = {}
      for key, value in pairs(record.fields or {}) do
        fields[#fields + 1] = key .. "=" .. tostring(value)
      end
      local line = record.message .. " " .. table.concat(fields, " ")
      if line:find(text, 1, true) then
        assert.is_nil(found)
        found = { path = tostring(record.path), line = line }
      end
    end
    return assert(found, "nothing logged says " .. text)
  end

  it("LIFE-7 logs what post_stop raises, and goes on stopping", function()
    local seen = {}
    local ref = kit().system:spawn({
      receive = ignore,
      post_stop = function() error("no goodbye") end,
    }, "name")
    note_stop(ref, seen)
    ref:stop()
    kit():settle()

    local record = logged("no goodbye")
    assert.are.equal("troupe://demo/user/name", record.path)
    assert.matches("stack traceback:.*lifecycle_spec%.lua", record.line)
    assert.are.same({ "stopped" }, seen)
    assert.are.equal("name", kit().system:spawn(ignore, "name").name)
  end)

  it("LIFE-7 logs what pre_restart raises, and goes on restarting", function()
    local seen = {}
    local ref = kit().system:spawn({
      pre_start = function(actor)
        seen[#seen + 1] = "pre_start"
        actor:spawn({ receive = ignore, post_stop = function() seen[#seen + 1] = "child" end })
      end,
      receive = function(_, message)
        if message == "fail" then error("restart") end
        seen[#seen + 1] = message
      end,
      pre_restart = function() error("not ready") end,
    }, "name")
    kit():settle()
    ref:tell("fail")
    ref:tell("mail")
    kit():settle()

    local record = logged("not ready")
    assert.are.equal("troupe://demo/user/name", record.path)
    assert.matches("stack traceback:.*lifecycle_spec%.lua", record.line)
    assert.are.same({ "pre_start", "child", "pre_start", "mail" }, seen)
  end)

  it("LIFE-7 does not charge a raise in pre_restart to the restart budget", function()
    local starts = 0
    local ref = kit().system:spawn({
      pre_start = function() starts = starts + 1 end,
      receive = function() error("restart") end,
      pre_restart = function() error("not ready") end,
    }, "name", { supervisor_strategy = troupe.one_for_one { max_restarts = 1, within_ms = 1000 } })
    ref:tell("fail")
    kit():settle()

    assert.are.equal(2, starts)
    assert.are.equal(1, kit().system:stats().actors)
  end)

  it("LIFE-8 publishes starts, restarts with their cause, and stops", function()
    local system = kit().system
    local cause = { "cause" }
    local events = {}
    for _, kind in ipairs { "actor_started", "actor_restarted", "actor_stopped" } do
      system.events:subscribe(function(event) events[#events + 1] = event end, kind)
    end
    local ref = system:spawn(function() error(cause) end)
    ref:tell("fail")
    kit():settle()
    ref:stop()
    kit():settle()

    local kinds = {}
    for i, event in ipairs(events) do
      kinds[i] = event.kind
      assert.are.equal(ref, event.ref)
    end
    assert.are.same({ "actor_started", "actor_restarted", "actor_stopped" }, kinds)
    assert.is_true(rawequal(cause, events[2].reason))
  end)

  it("LIFE-8 publishes actor_started when pre_start has finished", function()
    local seen = {}
    kit().system.events:subscribe(function() seen[#seen + 1] = "actor_started" end,
      "actor_started")
    kit().system:spawn({
      pre_start = function()
        troupe.sleep(10)
        seen[#seen + 1] = "pre_start"
      end,
      receive = ignore,
    })
    kit():advance(10)

    assert.are.same({ "pre_start", "actor_started" }, seen)
  end)

  it("LIFE-9 never resumes a parked handler whose parent stops it, and closes it", function()
    local seen = {}
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn({
          receive = function()
            local _ <close> = closing(seen, "closed")
            troupe.sleep(1000)
            seen[#seen + 1] = "resumed"
          end,
          post_stop = function() seen[#seen + 1] = ("post_stop at %g"):format(kit():now()) end,
        })
      end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()
    kid:tell("sleep")
    kit():advance(10)

    parent:tell("stop it")
    kit():advance(2000)

    assert.are.same({ "closed", "post_stop at 10" }, seen)
    assert.are.equal(0, kit().system:stats().parked)
  end)

  it("LIFE-9 closes a parked handler when the system's drain is over", function()
    local seen = {}
    kit({ drain_timeout_ms = 10 }).system:spawn(function()
      local _ <close> = closing(seen, "closed")
      troupe.sleep(1000)
      seen[#seen + 1] = "resumed"
    end):tell("sleep")

    kit().system:terminate()

    assert.are.same({ "closed" }, seen)
  end)

  it("LIFE-9 closes a parked hook as well", function()
    local seen = {}
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn({
          pre_start = function()
            local _ <close> = closing(seen, "closed")
            troupe.sleep(1000)
            seen[#seen + 1] = "resumed"
          end,
          receive = ignore,
        })
      end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()

    parent:tell("stop it")
    kit():advance(2000)

    assert.are.same({ "closed" }, seen)
    assert.are.equal(1, kit().system:stats().actors)
  end)

  --- Parks an actor that holds `held` in a to-be-closed variable, then has its parent stop it.
  local function stop_parked(held)
    local kid
    local parent = kit().system:spawn({
      pre_start = function(actor)
        kid = actor:spawn(function()
          local _ <close> = held
          troupe.sleep(1000)
        end)
      end,
      receive = function(actor) actor:stop(kid) end,
    })
    kit():settle()
    kid:tell("sleep")
    kit():settle()
    parent:tell("stop it")
    kit():settle()
  end

  it("LIFE-9 lets a closing variable tell, but not wait", function()
    local seen = {}
    local other = kit().system:spawn(function(_, message) seen[#seen + 1] = message end)
    stop_parked(setmetatable({}, {
      __close = function()
        other:tell("told from __close")
        seen[#seen + 1] = pcall(troupe.sleep, 10)
        seen[#seen + 1] = pcall(other.ask, other, "asked from __close")
      end,
    }))

    assert.are.same({ false, false, "told from __close" }, seen)
  end)

  it("LIFE-9 stops an actor whose closing variable raises", function()
    stop_parked(setmetatable({}, { __close = function() error("cannot close") end }))

    assert.are.equal(1, kit().system:stats().actors)
    assert.are.equal(0, kit().system:stats().parked)
  end)

  it("LIFE-10 fails a handler that yields outside any wait, and says so", function()
    local reason
    local seen = {}
    kit().system.events:subscribe(function(event) reason = event.reason end, "actor_failed")
    local ref = kit().system:spawn(function(_, message)
      if message == "yield" then coroutine.yield("to nobody") end
      seen[#seen + 1] = message
    end)
    ref:tell("yield")
    ref:tell("mail")
    kit():settle()

    assert.matches("yield", tostring(reason))
    assert.are.same({ "mail" }, seen)
    assert.are.equal(0, kit().system:stats().parked)
  end)

  it("LIFE-10 leaves a handler's own coroutines alone", function()
    local seen = {}
    kit().system:spawn(function()
      for n in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do
        seen[#seen + 1] = n
      end
    end):tell("iterate")
    kit():settle()

    assert.are.same({ 1, 2, 3 }, seen)
  end)

  it("LIFE-10 fails a parked handler that is resumed from outside, and says so", function()
    local reason, thread
    local seen = {}
    kit().system.events:subscribe(function(event) reason = event.reason end, "actor_failed")
    local ref = kit().system:spawn(function(_, message)
      if message == "mail" then
        seen[#seen + 1] = message
        return
      end
      thread = coroutine.running()
      seen[#seen + 1] = table.pack(troupe.sleep(50))
    end)
    ref:tell("sleep")
    kit():settle()

    coroutine.resume(thread, "an intruder")
    kit():advance(100)
    ref:tell("mail")
    kit():settle()

    assert.matches("resume", tostring(reason))
    assert.are.same({ "mail" }, seen)
    assert.are.equal(0, kit().system:stats().parked)
  end)

  it("LIFE-10 raises when a handler drives the loop", function()
    local driven = {}
    local system = kit().system
    system:spawn(function()
      driven.run = pcall(system.run, system)
      driven.settle = pcall(kit().settle, kit())
      driven.advance = pcall(kit().advance, kit(), 10)
    end):tell("drive")
    kit():settle()

    assert.are.same({ run = false, settle = false, advance = false }, driven)
  end)

  it("SPAWN-4 leaves nothing in hand to an actor table that was kept over a restart", function()
    local old
    local ref = kit().system:spawn(function(actor, message)
      old = old or actor
      if message == "fail" then error("restart") end
      assert.is_nil(old.sender)
      assert.is_false(old:reply("from the old one"))
      old.timers:start_single("tick", "tick", 10)
      actor:reply("from the new one")
    end)
    ref:tell("fail")
    kit():settle()

    assert.are.equal("from the new one", (ref:ask("who?")))
    assert.are.equal(0, kit().system:stats().timers)
  end)

  describe("at the edges", function()
    it("LIFE-4 calls pre_restart or post_stop of an incarnation, never both", function()
      for _, hooks in ipairs { "both", "post_stop alone" } do
        for stop, when in pairs {
          ["from inside"] = function(actor) actor:stop() end,
          ["from outside"] = function(actor) actor.ref:stop() end,
        } do
          local seen = {}
          local ref = kit().system:spawn({
            receive = function() error("restart") end,
            pre_restart = hooks == "both" and function(actor)
              seen[#seen + 1] = "pre_restart"
              when(actor)
            end or nil,
            post_stop = function(actor)
              seen[#seen + 1] = "post_stop"
              when(actor)
            end,
          })

          ref:tell("fail")
          kit():settle()

          assert.are.same({ hooks == "both" and "pre_restart" or "post_stop" }, seen, stop)
          assert.are.equal("stopped", kit().system:inspect(ref).state)
        end
      end
    end)

    it("DISP-1 a restart uses up a share of the turn", function()
      local failures, seen = 0, nil
      kit().system:spawn({
        pre_start = function(actor)
          failures = failures + 1
          if failures > 10000 then return actor:stop() end
          error("cannot start")
        end,
        receive = function() end,
      }, nil, { supervisor_strategy = troupe.one_for_one { max_restarts = -1 } })
      kit().system:spawn(function() seen = failures end):tell("my turn")

      kit():settle()

      assert.is_true(seen <= 33, ("waited for %d failures"):format(seen))
    end)

    it("SUP-3 suspends a child that is spawned below something suspended", function()
      local seen = {}
      local ref = kit().system:spawn({
        receive = function() error("restart") end,
        pre_restart = function(actor)
          actor:spawn({
            pre_start = function() seen[#seen + 1] = "starts" end,
            receive = function() seen[#seen + 1] = "receives" end,
          }):tell("mail")
          troupe.sleep(10)
          seen[#seen + 1] = "gone"
        end,
      }, nil, nil)

      ref:tell("fail")
      kit():advance(100)

      assert.are.same({ "gone" }, seen)
    end)

    it("SUP-3 lets such a child go on when the children are kept", function()
      local seen = {}
      local ref = kit().system:spawn({
        receive = function() error("restart") end,
        stop_children_on_restart = false,
        pre_restart = function(actor)
          actor:spawn(function() seen[#seen + 1] = "receives" end):tell("mail")
          troupe.sleep(10)
          seen[#seen + 1] = "gone"
        end,
        post_restart = function() seen[#seen + 1] = "new" end,
      })

      ref:tell("fail")
      kit():advance(100)

      table.sort(seen)
      assert.are.same({ "gone", "new", "receives" }, seen)
    end)

    it("SUP-11 kills an actor whose post_restart waits", function()
      local ref = kit().system:spawn({
        receive = function() error("restart") end,
        post_restart = function() troupe.sleep(1000000) end,
      }, nil, { supervisor_strategy = troupe.one_for_one { max_restarts = 1 } })
      ref:tell("fail")
      kit():settle()

      ref:kill()
      kit():settle()

      assert.are.equal("stopped", kit().system:inspect(ref).state)
    end)

    it("SUP-4 fails a parent whose post_restart waits when a child escalates", function()
      local seen = {}
      local ref = kit().system:spawn({
        receive = function() error("restart", 0) end,
        post_restart = function(actor, reason)
          seen[#seen + 1] = reason
          if reason ~= "restart" then return end
          actor:spawn(function() error("escalate", 0) end, nil,
            { supervisor_strategy = troupe.escalating_strategy }):tell("fail")
          troupe.sleep(1000)
          seen[#seen + 1] = "never"
        end,
      })

      ref:tell("fail")
      kit():advance(5000)

      assert.are.same({ "restart", "escalate" }, seen)
    end)

    it("LIFE-8 tells the cause of a restart whose post_restart was killed and resumed", function()
      local restarted = {}
      kit().system.events:subscribe(function(event)
        restarted[#restarted + 1] = event.reason.name
      end, "actor_restarted")
      local ref = kit().system:spawn({
        receive = function() error(troupe.error("Cause", "of the restart")) end,
        post_restart = function() troupe.sleep(10) end,
      }, nil, {
        supervisor_strategy = troupe.one_for_one {
          decider = function(reason) return reason.name == "Cause" and "restart" or "resume" end,
        },
      })
      ref:tell("fail")
      kit():settle()

      ref:kill()
      kit():advance(10)

      assert.are.same({ "ActorKilledError" }, restarted)
    end)

    it("LIFE-10 a handler that catches being resumed from outside waits on as any", function()
      local coroutine_of, results = nil, {}
      local ref = kit().system:spawn(function()
        coroutine_of = coroutine.running()
        results[1] = pcall(troupe.sleep, 10)
        results[2] = select("#", troupe.sleep(10)) == 0 and kit():now()
        coroutine.yield("outside any wait")
        results[3] = "never"
      end)
      ref:tell("go")
      kit():settle()

      coroutine.resume(coroutine_of)
      kit():advance(100)

      assert.are.same({ false, 10 }, results)
      assert.are.equal(1, kit().system:inspect(ref).restarts)
    end)

    it("LIFE-1 pre_start comes first, also for one that is killed before its first turn", function()
      local seen = {}
      local ref = kit().system:spawn({
        pre_start = function() seen[#seen + 1] = "pre_start" end,
        receive = function(_, message) seen[#seen + 1] = message end,
      }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })

      ref:kill()
      ref:tell("mail")
      kit():settle()

      assert.are.same({ "pre_start", "mail" }, seen)
    end)

    it("LIFE-4 runs no post_stop after a pre_start that was resumed, then given up", function()
      local seen = {}
      local child
      local parent = kit().system:spawn({
        pre_start = function(actor)
          child = actor:spawn({
            pre_start = function()
              troupe.sleep(100)
              seen[#seen + 1] = "started"
            end,
            receive = function() end,
            post_stop = function() seen[#seen + 1] = "post_stop" end,
          }, nil, { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
        end,
        receive = function(actor) actor:stop(child) end,
      })
      kit():settle()

      child:kill()
      kit():settle()
      parent:tell("stop it")
      kit():advance(200)

      assert.are.same({}, seen)
      assert.are.equal("stopped", kit().system:inspect(child).state)
    end)
  end)
end)
