local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local child = require "spec.support.child"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("systems", function()
  local kit = new_kit.each(before_each, after_each)

  it("SYS-1 takes a name of letters, digits, - and _ that begins with a letter", function()
    for _, name in ipairs { "d", "demo", "Demo-2_b" } do
      local system <close> = troupe.system(name)
      assert.are.equal(name, system.name)
    end
  end)

  it("SYS-1 refuses any other name at the caller's line", function()
    for _, name in ipairs { "", "2nd", "-a", "_a", "a b", "a/b", "a.b", "é", "a\n", "a\0" } do
      raised_here(function() troupe.system(name) end)
    end
    for _, name in ipairs { 42, true, {} } do
      raised_here(function() troupe.system(name) end)
    end
    raised_here(function() troupe.system() end)
  end)

  it("SYS-1 refuses an option that it does not know or that is out of range", function()
    local function refused(options)
      return raised_here(function() troupe.system("demo", options) end)
    end
    assert.matches("colour", refused { colour = "red" })
    assert.matches("drain_timeout_ms.*%-1", refused { drain_timeout_ms = -1 })
    assert.matches("drain_timeout_ms.*nan", refused { drain_timeout_ms = 0 / 0 })
    assert.matches("throughput.*0", refused { throughput = 0 })
    assert.matches("throughput.*1%.5", refused { throughput = 1.5 })
    assert.matches("log_level.*loud", refused { log_level = "loud" })
    raised_here(function() troupe.system("demo", 42) end)
  end)

  it("SYS-2 has a root, /user and /system", function()
    local system = kit().system
    local function at(path)
      return tostring(system:actor_selection(path):resolve_one().path)
    end

    assert.are.equal("troupe://demo/", at "/")
    assert.are.equal("troupe://demo/user", at "/user")
    assert.are.equal("troupe://demo/system", at "/system")
  end)

  it("SYS-2 keeps top-level actors under /user", function()
    local system = kit().system
    local parent
    system:spawn({ pre_start = function(actor) parent = actor.parent end, receive = ignore })
    kit():settle()

    assert.are.equal("troupe://demo/user", tostring(parent.path))
  end)

  it("SYS-2 has guardians that ignore user messages", function()
    local system = kit().system
    local letters = 0
    system.events:subscribe(function() letters = letters + 1 end, "dead_letter")

    for _, path in ipairs { "/", "/user", "/system" } do
      system:actor_selection(path):tell("hello")
    end
    kit():settle()

    assert.are.equal(0, letters)
    assert.are.equal(0, #kit().logs)
    assert.are.equal("troupe://demo/user/a", tostring(system:spawn(ignore, "a").path))
  end)

  it("SYS-3 shares no names between systems", function()
    local other = testkit.system("demo")
    local seen = {}
    local function record(where)
      return function(_, message) seen[#seen + 1] = where .. " " .. message end
    end
    local here = kit().system:spawn(record "here", "worker")
    local there = other.system:spawn(record "there", "worker")
    assert.are_not.equal(here, there)

    here:stop()
    here:tell("one")
    kit():settle()
    there:tell("two")
    other:settle()
    other.system:terminate()

    assert.are.same({ "there two" }, seen)
  end)

  it("SYS-3 shares no dead letters and no logs between systems", function()
    local other = testkit.system("demo")
    local letters = 0
    other.system.events:subscribe(function() letters = letters + 1 end, "dead_letter")
    local gone = kit().system:spawn(ignore, "gone")
    gone:stop()
    kit():settle()

    gone:tell("lost")
    kit():settle()
    other:settle()

    assert.are.equal(0, letters)
    assert.are.equal(1, #kit().logs)
    assert.are.equal(0, #other.logs)
    other.system:terminate()
  end)

  it("SYS-3 lets a message cross from one system to another", function()
    local other = testkit.system("other")
    local message = { "hello" }
    local seen
    local there = other.system:spawn(function(_, got) seen = got end)

    kit().system:spawn(function() there:tell(message) end):tell("go")
    kit():settle()
    other:settle()
    other.system:terminate()

    assert.is_true(rawequal(message, seen))
  end)

  it("SYS-4 terminates once, however often it is asked to", function()
    local system = kit().system
    local stops = 0
    system:spawn({ receive = ignore, post_stop = function() stops = stops + 1 end })
    kit():settle()

    system:terminate()
    system:terminate()

    assert.are.equal(1, stops)
  end)

  it("SYS-4 ends a second terminate with the first", function()
    local system = kit().system
    local stopped_at = {}
    local actor = system:spawn({
      receive = function(actor)
        actor.system:terminate()
        troupe.sleep(30)
      end,
      post_stop = function() stopped_at[#stopped_at + 1] = kit():now() end,
    })
    actor:tell("end")

    system:terminate()

    assert.are.same({ 30 }, stopped_at)
    assert.are.equal(0, #kit().logs)
  end)

  it("SYS-5 handles in order what was told before", function()
    local system = kit().system
    local seen = {}
    local actor = system:spawn(function(_, message) seen[#seen + 1] = message end)
    for i = 1, 100 do actor:tell(i) end

    system:terminate()

    local expected = {}
    for i = 1, 100 do expected[i] = i end
    assert.are.same(expected, seen)
  end)

  it("SYS-5 handles what is told while it drains", function()
    local system = kit().system
    local seen = {}
    local last = system:spawn(function(_, message) seen[#seen + 1] = message end)
    local middle = system:spawn(function(_, message) last:tell(message + 1) end)
    local first = system:spawn(function(_, message) middle:tell(message + 1) end)
    first:tell(1)

    system:terminate()

    assert.are.same({ 3 }, seen)
  end)

  it("SYS-5 takes no longer than the mail does", function()
    local system = kit().system
    system:spawn(ignore):tell("only one")

    system:terminate()

    assert.are.equal(0, kit():now())
  end)

  it("SYS-5 takes no time when nothing is going on", function()
    local system = kit().system
    system:spawn(ignore):tell("handled long ago")
    kit():settle()

    system:terminate()

    assert.are.equal(0, kit():now())
  end)

  it("SYS-5 waits for a handler that is parked", function()
    local system = kit().system
    local seen = {}
    local actor = system:spawn(function(_, ms)
      troupe.sleep(ms)
      seen[#seen + 1] = kit():now()
    end)
    actor:tell(100)
    actor:tell(50)

    system:terminate()

    assert.are.same({ 100, 150 }, seen)
    assert.are.equal(150, kit():now())
  end)

  it("SYS-5 drains for 2000 ms, then dead-letters what is left", function()
    local system = kit().system
    local seen, letters = {}, {}
    system.events:subscribe(function(event) letters[#letters + 1] = event.message end,
      "dead_letter")
    local actor = system:spawn(function(_, message)
      seen[#seen + 1] = message
      troupe.sleep(60000)
      seen[#seen + 1] = "woke up"
    end)
    for _, message in ipairs { "a", "b", "c" } do actor:tell(message) end

    system:terminate()

    assert.are.same({ "a" }, seen)
    assert.are.same({ "b", "c" }, letters)
    assert.are.equal(2000, kit():now())
  end)

  it("SYS-5 drains for as long as drain_timeout_ms says", function()
    local system = kit({ drain_timeout_ms = 50 }).system
    system:spawn(function() troupe.sleep(60000) end):tell("sleep")

    system:terminate()

    assert.are.equal(50, kit():now())
  end)

  it("SYS-5 does not drain when drain_timeout_ms is 0", function()
    local system = kit({ drain_timeout_ms = 0 }).system
    local seen, letters = {}, {}
    system.events:subscribe(function(event) letters[#letters + 1] = event.message end,
      "dead_letter")
    local actor = system:spawn(function(_, message) seen[#seen + 1] = message end)
    kit():settle()
    actor:tell("a")
    actor:tell("b")

    system:terminate()

    assert.are.same({}, seen)
    assert.are.same({ "a", "b" }, letters)
  end)

  it("SYS-5 does not wait for tasks: their waits end with an error", function()
    local system = kit().system
    local mute = system:spawn(ignore)
    local endings = {}
    kit():async(function() endings[1] = table.pack(troupe.sleep(3600000)) end)
    kit():async(function() endings[2] = table.pack(mute:ask("anyone?", 3600000)) end)
    kit():settle()

    system:terminate()

    for i = 1, 2 do
      assert.is_nil(endings[i][1])
      assert.is_true(troupe.is_error(endings[i][2], "SystemTerminatedError"))
    end
    assert.are.equal(0, kit():now())
  end)

  it("SYS-6 stops /user completely while /system still takes mail", function()
    local system = kit().system
    local letters = {}
    system.events:subscribe(function(event) letters[#letters + 1] = event.message end,
      "dead_letter")
    local guardian = system:actor_selection("/system"):resolve_one()
    system:spawn({
      receive = ignore,
      post_stop = function()
        troupe.sleep(10)
        guardian:tell("from post_stop")
      end,
    })
    kit():settle()

    system:terminate()
    guardian:tell("too late")
    kit():settle()

    assert.are.same({ "too late" }, letters)
  end)

  it("SYS-7 refuses to spawn once it has terminated", function()
    local system = kit().system
    system:terminate()

    assert.matches("terminat", raised_here(function() system:spawn(ignore) end))
  end)

  it("SYS-7 refuses to spawn while it terminates", function()
    local system = kit().system
    local ok, err
    system:spawn({
      receive = ignore,
      post_stop = function() ok, err = pcall(system.spawn, system, ignore, "late") end,
    })
    kit():settle()

    system:terminate()

    assert.is_false(ok)
    assert.matches("terminat", tostring(err))
  end)

  it("SYS-7 dead-letters what is told to an actor of a terminated system", function()
    local system = kit().system
    local letters = {}
    system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    local actor = system:spawn(ignore, "actor")
    system:terminate()

    assert.is_true(actor:tell("late"))
    kit():settle()

    assert.are.equal(1, #letters)
    assert.are.equal("late", letters[1].message)
    assert.are.equal("troupe://demo/user/actor", letters[1].recipient)
    assert.are.equal("system-terminated", letters[1].reason)
  end)

  it("SYS-8 terminates at the end of its scope", function()
    local seen = {}
    do
      local system <close> = troupe.system("scoped")
      local actor = system:spawn({
        receive = function(_, message) seen[#seen + 1] = message end,
        post_stop = function() seen[#seen + 1] = "stopped" end,
      })
      actor:tell("mail")
    end

    assert.are.same({ "mail", "stopped" }, seen)
  end)

  it("SYS-8 is quick about it when nothing is going on", function()
    local began = os.time()
    for _ = 1, 10 do
      local _ <close> = troupe.system("scoped")
    end

    assert.is_true(os.time() - began <= 2)
  end)

  it("SYS-8 terminates when its scope ends in an error", function()
    local stopped = false
    local ok, err = pcall(function()
      local system <close> = troupe.system("scoped")
      system:spawn({ receive = ignore, post_stop = function() stopped = true end }):tell("mail")
      error("the scope failed", 0)
    end)

    assert.is_false(ok)
    assert.are.equal("the scope failed", err)
    assert.is_true(stopped)
  end)

  it("SYS-8 is collected with its actors when nobody refers to it", function()
    local weak = setmetatable({}, { __mode = "v" })
    do
      local system = troupe.system("lost")
      local echo = system:spawn(function(actor, message) actor:reply(message) end)
      local ref = system:spawn({
        pre_start = function(actor)
          weak.actor = actor
          actor.spawned = actor:spawn(ignore)
          actor.timers:start_single("later", { "tick" }, 60000)
        end,
        receive = function() troupe.sleep(60000) end,
      })
      ref:tell({ "first" })
      ref:tell({ "second" })
      weak.system = system
      weak.ref = ref
      echo:ask("has it run?")
      assert.is_not_nil(weak.actor)
    end
    for _ = 1, 4 do collectgarbage() end

    assert.are.same({}, weak)
  end)

  it("SYS-8 turns the refs that outlive it stale", function()
    local ref
    do
      local system = troupe.system("lost")
      ref = system:spawn(ignore, "orphan")
    end
    for _ = 1, 4 do collectgarbage() end

    assert.is_true(ref:tell("anyone?"))
    assert.are.equal("troupe://lost/user/orphan", tostring(ref.path))
  end)

  describe("left open at lua_close", function()
    local busy = [[
      local troupe = require "troupe"
      system = troupe.system("open", { log_level = "off", drain_timeout_ms = 10 })
      local mute = system:spawn(function() end, "mute")
      ref = system:spawn(function(actor, message)
        local held <close> = setmetatable({}, { __close = function() mute:tell("closed") end })
        actor.timers:start_fixed_delay("tick", { "tick" }, 10)
        actor:spawn(function() troupe.sleep(60000) end):tell({ message })
        mute:ask(message, 60000)
      end, "busy")
      for i = 1, 10 do ref:tell({ i }) end
      system:schedule_every(60000, function() end)
      task = system:go(function() troupe.sleep(60000) end)
      system:spawn(function(actor) actor:reply("it runs") end):ask("does it run?")
      ref:tell("queued")
    ]]

    local function ends(status, code)
      local output, got = child(code)
      assert.are.same({ status, "" }, { got, output })
    end

    it("SYS-8 is torn down at the end of the script", function()
      ends(0, busy)
    end)

    it("SYS-8 may be freed without its finalizer, as deep in the C stack", function()
      local output = child [[
        local troupe = require "troupe"
        local systems = {}
        collectgarbage("stop")
        for i = 1, 250 do systems[i] = troupe.system("s") end
        local function deep()
          systems[#systems] = nil
          collectgarbage()
          return (("x"):gsub("x", deep))
        end
        print(pcall(deep))
        collectgarbage()
        troupe.system("after")
        print("ended")
      ]]

      -- What it held is lost with it: a leak checker has something to say after this.
      assert.matches("^false\tC stack overflow\nended\n", output)
    end)

    it("SYS-8 is torn down when nothing in it has run", function()
      ends(0, [[
        system = require "troupe".system("open")
        system:spawn(function() end):tell("unread")
      ]])
    end)

    it("SYS-8 is torn down after an error at the top level", function()
      local output, status = child(busy .. [[ error("top level") ]])

      assert.are.equal(1, status)
      assert.matches("top level", output)
    end)

    it("SYS-8 is torn down by os.exit", function()
      ends(3, busy .. [[ os.exit(3, true) ]])
      ends(3, busy .. [[ os.exit(3, false) ]])
    end)

    it("SYS-8 is torn down by os.exit in a handler", function()
      ends(4, busy .. [[
        system:spawn(function() os.exit(4, true) end):tell("exit")
        system:run()
      ]])
    end)

    it("SYS-8 is torn down with several other systems", function()
      ends(0, busy .. [[
        systems = {}
        for i = 1, 20 do
          systems[i] = require "troupe".system("open" .. i)
          systems[i]:spawn(function() end):tell("unread")
        end
      ]])
    end)

    it("SYS-8 bears finalizers that use it, made before and after it", function()
      local finalizer = [[
        local function finalizer()
          return setmetatable({}, { __gc = function()
            pcall(function() ref:tell("bye") end)
            pcall(function() ref:ask("bye", 10) end)
            pcall(function() ref:stop() end)
            pcall(function() system:spawn(function() end) end)
            pcall(function() system:schedule_once(10, function() end) end)
            pcall(function() system:go(function() end) end)
            pcall(function() system:terminate() end)
            pcall(function() return system:stats(), tostring(ref), ref.path, ref == ref end)
          end })
        end
      ]]
      ends(0, finalizer .. "before = finalizer()" .. busy .. "after = finalizer()")
    end)

    it("SYS-8 bears finalizers that use a system collected with them", function()
      ends(0, [[
        local troupe = require "troupe"
        for _ = 1, 50 do
          local system = troupe.system("open", { log_level = "off" })
          local ref = system:spawn(function() end)
          setmetatable({}, { __gc = function()
            pcall(ref.tell, ref, "bye")
            pcall(system.spawn, system, function() end)
            pcall(system.run, system)
          end })
          ref:tell("unread")
        end
        collectgarbage()
      ]])
    end)
  end)

  it("SYS-9 runs until no message is queued", function()
    local system = kit().system
    local seen = 0
    local actor = system:spawn(function(actor, n)
      seen = seen + 1
      if n > 1 then actor.ref:tell(n - 1) end
    end)
    actor:tell(1000)

    system:run()

    assert.are.equal(1000, seen)
  end)

  it("SYS-9 runs until no timer is left", function()
    local system = kit().system
    local fired_at
    system:schedule_once(500, function() fired_at = kit():now() end)

    system:run()

    assert.are.equal(500, fired_at)
    assert.are.equal(500, kit():now())
  end)

  it("SYS-9 runs until no task and no handler waits", function()
    local system = kit().system
    local ended = {}
    system:go(function()
      troupe.sleep(100)
      ended[#ended + 1] = "task"
    end)
    system:spawn(function()
      troupe.sleep(200)
      ended[#ended + 1] = "handler"
    end):tell("sleep")

    system:run()

    assert.are.same({ "task", "handler" }, ended)
  end)

  it("SYS-9 runs until no ask is open", function()
    local system = kit().system
    local mute = system:spawn(ignore)
    local answer
    system:go(function() answer = table.pack(mute:ask("anyone?", 300)) end)

    system:run()

    assert.is_true(troupe.is_error(answer[2], "AskTimeoutError"))
    assert.are.equal(300, kit():now())
  end)

  it("SYS-9 runs until it has terminated, whatever is left to do", function()
    local system = kit().system
    local ticks = 0
    system:schedule_every(100, function()
      ticks = ticks + 1
      if ticks == 3 then system:terminate() end
    end)

    system:run()

    assert.are.equal(300, kit():now())
    assert.is_false(pcall(system.spawn, system, ignore))
  end)

  it("SYS-9 leaves idle actors alive", function()
    local system = kit().system
    local actor = system:spawn(function(actor, message) actor:reply(message) end)

    system:run()

    assert.are.equal("still here", (actor:ask("still here")))
  end)

  it("SYS-10 sleeps while it has nothing to do", function()
    local output, status = child [[
      local function switches()
        local file = io.open("/proc/self/status")
        local text = file and file:read("a") or ""
        return tonumber(text:match("\nvoluntary_ctxt_switches:%s*(%d+)")) or 0
      end
      local troupe = require "troupe"
      local system = troupe.system("idle")
      for _ = 1, 100 do system:spawn(function() end) end
      local fired = false
      system:schedule_once(1000, function() fired = true end)
      local cpu, woken = os.clock(), switches()
      system:run()
      print(fired, os.clock() - cpu < 0.05, switches() - woken < 10)
    ]]

    assert.are.same({ "true\ttrue\ttrue\n", 0 }, { output, status })
  end)
end)
