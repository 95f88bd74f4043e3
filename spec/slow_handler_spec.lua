local troupe = require "troupe"
local child = require "spec.support.child"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

-- In real time, since a loop that never ends lets no other time go by. No loop here goes on for
-- longer than it takes to be reported, or than this.
local PATIENCE_S = 20

local LIMIT_MS = 30

describe("slow handlers", function()
  local records, events

  before_each(function() records, events = {}, {} end)

  local function new_system(options)
    local all = { slow_handler_ms = LIMIT_MS, log = function(r) records[#records + 1] = r end }
    for key, value in next, options or {} do all[key] = value end
    local system = troupe.system("slow", all)
    system.events:subscribe(function(event) events[#events + 1] = event end, "slow_handler")
    return system
  end

  local function spin_until(done)
    local ends = os.time() + PATIENCE_S
    repeat until done() or os.time() > ends
  end

  --- Runs on until one more has been reported; gives whether it was.
  local function spin()
    local before = #events
    spin_until(function() return #events > before end)
    return #events > before
  end

  local function spin_for(ms)
    local ends = os.clock() + ms / 1000
    spin_until(function() return os.clock() >= ends, {} end) -- which also feeds the collector
  end

  it("DISP-4 warns of a loop while it runs, with the path and where it is", function()
    local system <close> = new_system()
    local endless = false
    local function going_round()
      local ends = os.time() + PATIENCE_S
      while #records == 0 do
        for _ = 1, 100000 do endless = not endless end
        if os.time() > ends then break end
      end
    end
    local in_time
    system:spawn(function()
      going_round()
      in_time = #records
    end, "looper"):tell("go round")

    system:run()

    assert.are.equal(1, in_time)
    assert.are.equal("warn", records[1].level)
    assert.are.equal("troupe://slow/user/looper", records[1].path)
    assert.matches("has run for %d+ ms", records[1].message)
    assert.matches("slow_handler_spec.lua:%d+: in upvalue 'going_round'",
      records[1].fields.traceback)
  end)

  it("DISP-4 is published as slow_handler", function()
    local system <close> = new_system()
    local looper = system:spawn(spin)
    looper:tell("go round")

    system:run()

    assert.are.equal(looper, events[1].ref)
    assert.is_true(events[1].ms >= LIMIT_MS, ("after %d ms"):format(events[1].ms))
    assert.matches("in .*spin", events[1].traceback)
  end)

  it("DISP-4 tells actors too, after the handler", function()
    local system <close> = new_system()
    local told
    local listener = system:spawn(function(_, event) told = event end)
    system.events:subscribe(listener, "slow_handler")
    system:spawn(spin):tell("go round")

    system:run()

    assert.are.equal("slow_handler", told.kind)
  end)

  it("DISP-4 reports a handler once", function()
    local system <close> = new_system()
    system:spawn(function()
      spin()
      spin_for(4 * LIMIT_MS)
    end):tell("go round")

    system:run()

    assert.are.equal(1, #events)
    assert.are.equal(1, #records)
  end)

  it("DISP-4 begins anew with the next message, and after a wait", function()
    local system <close> = new_system()
    local looper = system:spawn(function()
      spin()
      troupe.sleep(1)
      spin()
    end)
    looper:tell("first")
    looper:tell("second")

    system:run()

    assert.are.equal(4, #events)
  end)

  it("DISP-4 does not report a handler that waits", function()
    local system <close> = new_system { slow_handler_ms = 200 }
    local done
    system:spawn(function()
      for _ = 1, 3 do troupe.sleep(100) end
      done = true
    end):tell("wait")

    system:run()

    assert.is_true(done)
    assert.are.equal(0, #events)
  end)

  it("DISP-4 does not add short handlers up", function()
    local system <close> = new_system { slow_handler_ms = 200 }
    local handled = 0
    local worker = system:spawn(function()
      spin_for(2)
      handled = handled + 1
    end)
    for _ = 1, 150 do worker:tell("work") end

    system:run()

    assert.are.equal(150, handled)
    assert.are.equal(0, #events)
  end)

  it("DISP-4 notices one after the system has slept", function()
    local system <close> = new_system()
    local in_time
    system:schedule_once(10 * LIMIT_MS, function() in_time = spin() end)

    system:run()

    assert.is_true(in_time)
  end)

  it("DISP-4 takes a second to be slow, unless slow_handler_ms says otherwise", function()
    local system <close> = troupe.system("slow", { log = function(r) records[1] = r end })
    system:spawn(function() spin_until(function() return records[1] end) end):tell("go round")

    system:run()

    local ms = tonumber(records[1].message:match("%d+"))
    assert.is_true(ms >= 1000, ("after %d ms"):format(ms))
  end)

  it("DISP-4 is off with slow_handler_ms = 0", function()
    local system <close> = new_system { slow_handler_ms = 0 }
    system:spawn(function() spin_for(4 * LIMIT_MS) end):tell("go round")

    system:run()

    assert.are.equal(0, #events)
  end)

  it("DISP-4 refuses a slow_handler_ms that is no time", function()
    local function refused(ms)
      return raised_here(function() troupe.system("slow", { slow_handler_ms = ms }) end)
    end
    assert.matches("slow_handler_ms.*%-1", refused(-1))
    assert.matches("slow_handler_ms.*often", refused("often"))
  end)

  describe("in virtual time", function()
    local kit = new_kit.each(before_each, after_each)

    it("DISP-4 is off", function()
      kit { slow_handler_ms = 1 }
      kit().system:spawn(function() spin_for(50) end):tell("go round")

      kit().system:run()

      assert.are.same({}, kit().logs)
    end)
  end)

  describe("of every kind:", function()
    local USER = "troupe://slow/user/a"

    local function reported(path, start)
      local system <close> = new_system { log_level = "warn" }
      start(system)
      system:run()
      assert.are.equal(1, #events)
      assert.are.equal(path, records[#records].path)
    end

    it("DISP-4 a hook", function()
      reported(USER, function(system)
        system:spawn({ pre_start = spin, receive = function() end }, "a")
      end)
    end)

    it("DISP-4 a handler that has waited", function()
      reported(USER, function(system)
        system:spawn(function()
          troupe.sleep(1)
          spin()
        end, "a"):tell("go")
      end)
    end)

    it("DISP-4 a variable that is closed when its handler cannot go on", function()
      reported(USER, function(system)
        system:spawn(function(actor)
          local _ <close> = setmetatable({}, { __close = spin })
          system:go(function() actor.ref:kill() end)
          troupe.sleep(60000)
        end, "a"):tell("wait")
      end)
    end)

    it("DISP-4 a decider, with the path of the actor that failed", function()
      local system <close> = new_system()
      system:spawn(function() error("boom") end, "a", {
        supervisor_strategy = troupe.one_for_one {
          decider = function()
            spin()
            return "stop"
          end,
        },
      }):tell("fail")

      system:run()

      assert.are.equal(1, #events)
      assert.are.equal(USER, records[1].path)
    end)

    it("DISP-4 a routing strategy, while it runs", function()
      local routed = false
      reported(USER, function(system)
        local function strategy(routees)
          spin()
          return routees[1]
        end
        local function note() routed = true end
        system:spawn(troupe.Router.custom(1, note, strategy), "a"):tell("go")
      end)

      assert.is_true(routed, "it was reported when it had been stopped")
    end)

    it("DISP-4 a routing strategy that is in a coroutine of its own", function()
      local routed = false
      reported(USER, function(system)
        local function strategy(routees)
          coroutine.wrap(spin)()
          return routees[1]
        end
        local function note() routed = true end
        system:spawn(troupe.Router.custom(1, note, strategy), "a"):tell("go")
      end)

      assert.is_true(routed, "it was reported when it had been stopped")
    end)

    it("DISP-4 a task, with the path of the system", function()
      reported("troupe://slow/", function(system) system:go(spin) end)
    end)

    it("DISP-4 the function of a timer, with the path of the system", function()
      reported("troupe://slow/", function(system) system:schedule_once(1, spin) end)
    end)

    it("DISP-4 a coroutine of the user's own that has waited", function()
      reported("troupe://slow/", function(system)
        local echo = system:spawn(function(actor, message) actor:reply(message) end)
        coroutine.wrap(function()
          echo:ask("how are you?")
          spin()
        end)()
      end)
    end)
  end)

  it("DISP-4 sees into coroutines that a handler runs, if they allocate", function()
    local system <close> = new_system()
    local seen_inside
    system:spawn(function()
      coroutine.wrap(function()
        spin_until(function() return #events > 0, {} end)
        seen_inside = #events
      end)()
    end):tell("go round")

    system:run()

    assert.are.equal(1, seen_inside)
    assert.matches("slow_handler_spec", events[1].traceback)
  end)

  it("DISP-4 reports a handler that is stuck in a call into C when that is over", function()
    local system <close> = new_system()
    local seen_after, hook
    system:spawn(function()
      os.execute("sleep 0.3; kill -URG $PPID") -- the signal may come from elsewhere too
      seen_after = #events
      hook = debug.gethook()
    end):tell("be stuck")

    system:run()

    assert.are.equal(1, seen_after)
    assert.is_nil(hook)
    assert.is_true(events[1].ms >= 200, ("after %d ms"):format(events[1].ms))
  end)

  it("DISP-4 does not blame the next one for a call into C that has ended", function()
    local system <close> = new_system()
    local done, hook
    system:go(os.execute, "sleep 0.2")
    system:go(os.execute, "sleep 0.2")
    system:go(function()
      for _ = 1, 10 do done = true end
      hook = debug.gethook()
    end)

    system:run()

    assert.is_true(done)
    assert.are.equal(0, #events)
    assert.is_nil(hook)
  end)

  it("DISP-4 leaves the user's own debug hook in place", function()
    local system <close> = new_system()
    local lines, counted_after = 0, nil
    local before, after
    system:spawn(function()
      debug.sethook(function() lines = lines + 1 end, "l", 1000)
      before = table.pack(debug.gethook())
      spin()
      after = table.pack(debug.gethook())
      local counted = lines
      spin_for(1)
      counted_after = lines - counted
      debug.sethook()
    end):tell("go round")

    system:run()

    assert.are.equal(1, #events)
    assert.are.same(before, after)
    assert.is_true(counted_after > 0)
  end)

  it("DISP-4 leaves no hook behind in the handler or in coroutines that it makes", function()
    local system <close> = new_system()
    local hooks = {}
    system:spawn(function()
      local made
      spin_until(function()
        made = coroutine.create(function() hooks[#hooks + 1] = debug.gethook() or "none" end)
        return #events > 0
      end)
      coroutine.resume(made)
      hooks[#hooks + 1] = debug.gethook() or "none"
    end):tell("go round")

    system:run()

    assert.are.same({ "none", "none" }, hooks)
  end)

  it("DISP-4 does not let a subscriber break the handler, or wait in it", function()
    local waited
    local system <close> = new_system()
    system.events:subscribe(function() error("no more") end, "slow_handler")
    system.events:subscribe(function() waited = table.pack(pcall(troupe.sleep, 1)) end,
      "slow_handler")
    local handled
    system:spawn(function()
      spin()
      handled = true
    end):tell("go round")

    system:run()

    assert.is_true(handled)
    assert.is_false(waited[1])
    assert.matches("cannot wait here", tostring(waited[2]))
  end)

  it("DISP-4 does not break a handler that has no room for the report", function()
    local system <close> = new_system()
    local function deep(levels, fn)
      local calls = table.move({ fn }, 1, 1, levels + 1)
      for i = 1, levels do calls[i] = pcall end
      pcall(table.unpack(calls))
    end
    local levels, room, handled = 0, true, false
    system:spawn(function()
      while room do
        room = false
        levels = levels + 1
        deep(levels, function() room = true end)
      end
      deep(levels - 1, function()
        spin_for(4 * LIMIT_MS)
        handled = true
      end)
    end):tell("go deep")

    system:run()

    assert.is_true(levels > 50, ("%d levels deep"):format(levels))
    assert.is_true(handled)
  end)

  describe("of a system that a handler of another one drives:", function()
    local inner_events

    local function run_inner()
      local options = { slow_handler_ms = LIMIT_MS, log_level = "off" }
      local inner <close> = troupe.system("inner", options)
      inner_events = {}
      inner.events:subscribe(function(event) inner_events[#inner_events + 1] = event end,
        "slow_handler")
      inner:spawn(function() spin_until(function() return inner_events[1] end) end, "b"):tell("go")
      inner:run()
    end

    it("DISP-4 each is told from the other", function()
      local outer <close> = new_system()
      outer:spawn(run_inner, "a"):tell("go")

      outer:run()

      assert.are.equal("troupe://inner/user/b", tostring(inner_events[1].ref))
      assert.are.equal("troupe://slow/user/a", tostring(events[1].ref))
    end)

    it("DISP-4 has a limit of its own", function()
      local outer <close> = new_system { slow_handler_ms = 3600000 }
      outer:spawn(function()
        troupe.sleep(10 * LIMIT_MS) -- until those before it are not looked for any more
        run_inner()
      end, "a"):tell("go")

      outer:run()

      assert.are.equal(1, #inner_events)
      assert.are.equal(0, #events)
    end)
  end)

  describe("in a process of its own:", function()
    local slow = [[
      troupe = require "troupe"
      local seen = 0
      function spin()
        local before, ends = seen, os.time() + 20
        repeat until seen > before or os.time() > ends
      end
      function new_system(name)
        local made = troupe.system(name, { slow_handler_ms = 30, log_level = "off" })
        made.events:subscribe(function()
          seen = seen + 1
          print("slow")
          if on_slow then on_slow() end
        end, "slow_handler")
        return made
      end
      system = new_system("slow")
      looper = system:spawn(function() spin() end)
      looper:tell("go round")
    ]]

    local function prints(expected, status, code)
      local output, got = child(code)
      assert.are.same({ expected, status }, { output, got })
    end

    it("DISP-4 lets a script end with the system open", function()
      prints("slow\n", 0, slow .. [[ system:run() ]])
    end)

    it("DISP-4 lets os.exit end a script", function()
      prints("slow\n", 3, slow .. [[ system:run() os.exit(3) ]])
      prints("slow\n", 3, slow .. [[ system:run() os.exit(3, true) ]])
    end)

    it("DISP-4 lets os.exit end a slow handler", function()
      local exit = [[ looper:tell("again") looper:tell("never") system:spawn(spin):tell("never") ]]
      prints("slow\n", 3, slow .. exit .. [[ on_slow = function() os.exit(3) end system:run() ]])
      prints("slow\n", 3, slow .. exit
        .. [[ on_slow = function() os.exit(3, true) end system:run() ]])
    end)

    it("DISP-4 lets os.exit end a handler, several systems deep", function()
      local signal_at_close = [[
        at_close = setmetatable({}, { __gc = function() os.execute("kill -URG $PPID") end })
      ]]
      prints("", 3, signal_at_close .. slow .. [[
        local function deep(n)
          if n == 0 then os.exit(3, true) end
          local inner = new_system("inner")
          inner:spawn(function() deep(n - 1) end):tell("go")
          inner:run()
        end
        local outer = new_system("outer")
        outer:go(deep, 3)
        outer:run()
      ]])
    end)

    it("SYS-10 does not look for slow handlers while nothing runs", function()
      prints("true\n", 0, [[
        local function wakings()
          local file = io.open("/proc/self/status")
          local text = file and file:read("a") or ""
          return tonumber(text:match("\nvoluntary_ctxt_switches:%s*(%d+)")) or 0
        end
        local troupe = require "troupe"
        local system = troupe.system("idle", { slow_handler_ms = 4 }) -- a look every millisecond
        system:go(function() troupe.sleep(500) end)
        local before = wakings()
        system:run()
        print(wakings() - before < 20)
      ]])
    end)

    it("DISP-4 bears its signal from others, when nothing is slow", function()
      prints("slow\nslow\n", 0, slow .. [[
        system:run()
        os.execute("kill -URG $PPID")
        local patient = troupe.system("patient", { slow_handler_ms = 60000 })
        patient:go(function()
          os.execute("for i in 1 2 3 4 5 6 7 8; do kill -URG $PPID; sleep 0.01; done")
        end)
        patient:run()
        looper:tell("go round")
        system:run()
        system:terminate()
        system, looper = nil, nil
        collectgarbage()
        os.execute("kill -URG $PPID")
      ]])
    end)
  end)
end)
