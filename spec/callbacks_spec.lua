--- Every function of the user's that the runtime calls raises, in every way.
local troupe = require "troupe"
local child = require "spec.support.child"
local new_kit = require "spec.support.kit"

-- Ways to raise -----------------------------------------------------------------------------------

-- By name: `raise`, and whether a reason that arrived is the one that was raised.
local ways = {}

local function way_of_value(name, value)
  ways[name] = {
    raise = function() error(value, 0) end,
    is = function(reason) return rawequal(reason, value) end,
    is_nil = value == nil,
  }
end

way_of_value("a string", "boom")
way_of_value("a table", { code = 7 })
way_of_value("nil", nil)
way_of_value("a coroutine", coroutine.create(print))
way_of_value("a number", 42)
way_of_value("an error value", troupe.error("Broken", "no disk"))
way_of_value("a table whose __tostring raises",
  setmetatable({}, { __tostring = function() error("from __tostring") end }))
way_of_value("a table whose __tostring gives no string",
  setmetatable({}, { __tostring = function() return {} end }))
way_of_value("userdata", io.stdout)

local function way_of_fault(name, text, raise, is_slow)
  ways[name] = {
    raise = raise,
    is = function(reason)
      return type(reason) == "string" and reason:find(text, 1, true) ~= nil
    end,
    is_slow = is_slow,
  }
end

-- A function of many locals fills the stack in few calls.
local overflow = load(([[
  local function overflow()
    local a = nil%s
    return 1 + overflow()
  end
  return overflow
]]):format((", nil"):rep(200)))()

local function overflow_c()
  return (("x"):gsub("x", overflow_c))
end

way_of_fault("a stack overflow", "stack overflow", overflow, true)
way_of_fault("a C stack overflow", "C stack overflow", overflow_c)

-- Callbacks ---------------------------------------------------------------------------------------

--- A to-be-closed value.
local function closing(fn) return setmetatable({}, { __close = fn }) end

local function new_breaker(is_failure)
  return troupe.circuit_breaker {
    max_failures = 1, reset_timeout_ms = 1000, is_failure = is_failure,
  }
end

--- A function that calls `raise` in its first call, and else `otherwise`.
local function once(raise, otherwise)
  local raised = false
  return function(...)
    if raised then return otherwise and otherwise(...) end
    raised = true
    raise()
  end
end

--- What a behavior does in these tests: notes what it gets, and calls `act` for "raise".
local function notes_or(t, act)
  return function(actor, message)
    if message == "raise" then act(actor) else t.note(message) end
  end
end

--- By name: the statement that says what becomes of it; `run`, which has it raise once;
--- `notes`, what `t.note` is to get ("next" is mail after the failure); `logs`, the levels of what
--- is logged at warn or error; `arrives`, how many times the very reason arrives: in events of the
--- kinds that `t.listen` names, and where `t.arrived` is called. Slow ways are tried where
--- `slow_too` says so: once for each way that the runtime calls functions.
local callbacks = {
  ["receive"] = {
    id = "SUP-9", logs = { "warn" }, arrives = 1,
    run = function(t)
      t.listen("actor_failed")
      t.send(t.system:spawn(notes_or(t, t.raise)))
    end,
  },

  ["receive, after a wait"] = {
    id = "SUP-9", logs = { "warn" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("actor_failed")
      t.send(t.system:spawn(notes_or(t, function()
        troupe.sleep(1)
        t.raise()
      end)))
    end,
  },

  ["pre_start"] = {
    id = "LIFE-3", logs = { "warn" }, arrives = 1,
    run = function(t)
      t.listen("actor_failed", "cause")
      t.send(t.system:spawn({ pre_start = once(t.raise), receive = notes_or(t) }), "next")
    end,
  },

  ["post_restart"] = {
    id = "LIFE-3", logs = { "warn", "warn" }, arrives = 1,
    run = function(t)
      local ref = t.system:spawn({
        post_restart = once(t.raise),
        receive = notes_or(t, function()
          t.listen("actor_restarted", "cause")
          error("the first failure")
        end),
      })
      t.send(ref)
    end,
  },

  ["pre_restart"] = {
    id = "LIFE-7", logs = { "warn", "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      t.send(t.system:spawn({
        pre_restart = t.raise,
        receive = notes_or(t, function() error("the first failure") end),
      }))
    end,
  },

  ["post_stop"] = {
    id = "LIFE-7", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local ref = t.system:spawn({ post_stop = t.raise, receive = notes_or(t) }, "name")
      ref:stop()
      assert(ref:await_stop(1))
      t.send(t.system:spawn(notes_or(t), "name"), "next")
    end,
  },

  ["a decider"] = {
    id = "SUP-7", logs = { "error", "error" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("hook_failed")
      local parent = t.system:spawn({
        supervisor_strategy = troupe.one_for_one { decider = t.raise },
        receive = notes_or(t, function(actor)
          actor:spawn(function() error("the child's failure") end):tell("go")
        end),
      })
      t.send(parent)
    end,
  },

  ["a match of decide_by"] = {
    id = "SUP-7", logs = { "error", "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local decider = troupe.decide_by { { t.raise, "resume" } }
      local failing = t.system:spawn(function() error("a failure") end, nil,
        { supervisor_strategy = troupe.one_for_one { decider = decider } })
      failing:tell("go")
      t.send(t.system:spawn(notes_or(t)), "next")
    end,
  },

  ["a strategy"] = {
    id = "RTR-11", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local strategy = once(t.raise, function(routees) return routees[1] end)
      t.send(t.system:spawn(troupe.Router.custom(1, notes_or(t), strategy)))
    end,
  },

  ["a strategy of a group"] = {
    id = "RTR-17", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local strategy = once(t.raise, function(routees) return routees[1] end)
      local member = t.system:spawn(notes_or(t))
      t.send(t.system:spawn(troupe.Router.group(strategy, { member })))
    end,
  },

  ["an iterator of a strategy"] = {
    id = "RTR-11", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local strategy = function(routees, state)
        if state.message == "raise" then return t.raise end
        return routees
      end
      t.send(t.system:spawn(troupe.Router.custom(1, notes_or(t), strategy)))
    end,
  },

  ["hash_key"] = {
    id = "RTR-16", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local hash_key = once(t.raise, function(message) return message end)
      t.send(t.system:spawn(troupe.Router.consistent_hashing(1, notes_or(t), {
        hash_key = hash_key,
      })))
    end,
  },

  ["a priority function"] = {
    id = "MBX-7", logs = { "error" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("hook_failed")
      t.send(t.system:spawn(notes_or(t, function() t.note("the last") end), nil,
        { mailbox = { priority = once(t.raise, function() return 1 end) } }))
    end,
    notes = { "next", "the last" },
  },

  ["a priority function of a routee"] = {
    id = "MBX-7", logs = { "error" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("hook_failed")
      local routee = notes_or(t, function() t.note("the last") end)
      t.send(t.system:spawn(troupe.Router.random(1, routee,
        { mailbox = { priority = once(t.raise, function() return 1 end) } })))
    end,
    notes = { "next", "the last" },
  },

  ["a log function"] = {
    id = "LOG-1", logs = {}, arrives = 0,
    options = function(t)
      return { log = t.raise }
    end,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function(actor)
        actor.log:info("first")
        actor.log:error("second")
        t.note("not interrupted")
      end)))
    end,
    notes = { "not interrupted", "next" },
    on_stderr = 1,
  },

  ["a subscriber"] = {
    id = "EVT-1", logs = { "error" }, arrives = 0, slow_too = true,
    run = function(t)
      t.system.events:subscribe(once(t.raise, function() t.note("the next event") end), "mine")
      t.system.events:subscribe(function(event) t.note(event.text) end, "mine")
      t.system.events:publish("mine", { text = "the others" })
      t.system.events:publish("mine", { text = "the others again" })
    end,
    notes = { "the others", "the next event", "the others again" },
  },

  ["a subscriber to an event of the runtime"] = {
    id = "EVT-1", logs = { "error" }, arrives = 0,
    run = function(t)
      t.system.events:subscribe(t.raise, "actor_started")
      t.send(t.system:spawn(notes_or(t)), "next")
    end,
  },

  ["a function of schedule_once"] = {
    id = "TMR-6", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      t.system:schedule_once(1, t.raise)
      t.system:schedule_once(1, function() t.note("next") end)
    end,
  },

  ["a function of schedule_every"] = {
    id = "TMR-6", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local timer
      timer = t.system:schedule_every(1, once(t.raise, function()
        t.note("next")
        timer:cancel()
      end))
    end,
  },

  ["a function of schedule_once, after a wait"] = {
    id = "TMR-6", logs = { "error" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("hook_failed")
      t.system:schedule_once(1, function()
        troupe.sleep(1)
        t.raise()
      end)
      t.send(t.system:spawn(notes_or(t)), "next")
    end,
  },

  ["a task that is awaited"] = {
    id = "ASK-11", logs = {}, arrives = 1, slow_too = true,
    run = function(t)
      local value, err = t.system:go(t.raise):await()
      assert.is_nil(value)
      t.arrived_as_error(err)
      t.note("next")
    end,
  },

  ["a task that nobody awaits"] = {
    id = "ASK-11", logs = { "error" }, arrives = 0,
    run = function(t)
      t.system:go(t.raise)
      t.system:go(t.note, "next")
    end,
  },

  ["a coroutine of the user's own, after a wait"] = {
    id = "ASK-2", logs = { "error" }, arrives = 0,
    run = function(t)
      local echo = t.system:spawn(function(actor, message) actor:reply(message) end)
      coroutine.wrap(function()
        echo:ask("hello")
        t.raise()
      end)()
      t.send(t.system:spawn(notes_or(t)), "next")
    end,
  },

  ["a function of pipe_to_self"] = {
    id = "PAT-1", logs = {}, arrives = 1,
    run = function(t)
      t.send(t.system:spawn(function(actor, message)
        if message == "raise" then return actor:pipe_to_self(t.raise) end
        if message == "next" then return t.note(message) end
        t.arrived_as_error(message.err)
      end))
    end,
  },

  ["a mapper of pipe_to_self"] = {
    id = "PAT-1", logs = { "error" }, arrives = 0,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function(actor)
        actor:pipe_to_self(function() return "a result" end, t.raise)
      end)))
    end,
  },

  ["a function that is retried"] = {
    id = "PAT-1", logs = {}, arrives = 1,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function()
        t.arrived(select(2, pcall(troupe.retry, t.raise, { attempts = 3, delay_ms = 1 })))
      end)))
    end,
  },

  ["what a circuit breaker calls"] = {
    id = "CB-1", logs = {}, arrives = 1,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function()
        local breaker = new_breaker()
        t.arrived(select(2, pcall(breaker.call, breaker, t.raise)))
      end)))
    end,
  },

  ["is_failure of a circuit breaker"] = {
    id = "CB-1", logs = { "error" }, arrives = 0,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function()
        local breaker = new_breaker(t.raise)
        t.note(breaker:call(function() return "a result" end))
        t.note(breaker:state())
      end)))
    end,
    notes = { "a result", "open", "next" },
  },

  ["a listener to a circuit breaker"] = {
    id = "CB-1", logs = { "error" }, arrives = 0,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function()
        local breaker = new_breaker()
        breaker:on_change(t.raise)
        breaker:on_change(function(_, to) t.note(to) end)
        breaker:call(function() return nil, "a failure" end)
      end)))
    end,
    notes = { "open", "next" },
  },

  ["__close in a handler"] = {
    id = "SUP-9", logs = { "warn" }, arrives = 1,
    run = function(t)
      t.listen("actor_failed")
      t.send(t.system:spawn(notes_or(t, function() local _ <close> = closing(t.raise) end)))
    end,
  },

  ["__close in a handler that fails"] = {
    id = "SUP-9", logs = { "warn" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("actor_failed")
      t.send(t.system:spawn(notes_or(t, function()
        local _ <close> = closing(t.raise)
        error("the handler's own")
      end)))
    end,
  },

  ["__close in a parked handler that restarts"] = {
    id = "LIFE-9", logs = { "warn", "error" }, arrives = 1, slow_too = true,
    run = function(t)
      t.listen("hook_failed")
      local ref = t.system:spawn(notes_or(t, function()
        local _ <close> = closing(t.raise)
        troupe.sleep(1000)
      end))
      t.send(ref)
      t.kit:settle()
      ref:kill()
    end,
  },

  ["__close in a parked handler that is stopped"] = {
    id = "LIFE-9", logs = { "error" }, arrives = 1,
    run = function(t)
      t.listen("hook_failed")
      local parent = t.system:spawn(notes_or(t, function(actor)
        local parked = actor:spawn(function()
          local _ <close> = closing(t.raise)
          troupe.sleep(1000)
        end)
        parked:tell("go")
        troupe.sleep(1)
        actor:stop(parked)
        t.note(parked:await_stop(1) and "stopped")
      end))
      t.send(parent)
    end,
    notes = { "stopped", "next" },
  },

  ["__close in a task that is cancelled"] = {
    id = "ASK-11", logs = { "error" }, arrives = 0,
    run = function(t)
      local task = t.kit:async(function()
        local _ <close> = closing(t.raise)
        while true do troupe.sleep(1000) end
      end)
      task:cancel()
      t.note(select(2, task:await()).name)
    end,
    notes = { "CancelledError" },
  },

  ["__gc while a handler runs"] = {
    id = "SUP-9", logs = {}, arrives = 0,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function()
        setmetatable({}, { __gc = function()
          t.note("finalized")
          t.raise()
        end })
        collectgarbage()
        t.note("not interrupted")
      end)))
    end,
    notes = { "finalized", "not interrupted", "next" },
  },

  ["__tostring of a dead letter"] = {
    id = "DL-2", logs = {}, arrives = 0,
    run = function(t)
      local gone = t.system:spawn(notes_or(t))
      gone:stop()
      gone:tell(setmetatable({}, { __tostring = t.raise }))
      t.send(t.system:spawn(notes_or(t)), "next")
    end,
  },

  ["__tostring of what is logged"] = {
    id = "LOG-2", logs = { "warn" }, arrives = 0,
    run = function(t)
      t.send(t.system:spawn(notes_or(t, function(actor)
        local shown = setmetatable({}, { __tostring = t.raise })
        actor.log:warn("%s", shown, { field = shown })
      end)))
    end,
  },
}

-- The specs ---------------------------------------------------------------------------------------

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Runs `fn`, and gives the lines it wrote to stderr.
local function stderr_of(fn)
  local real, lines = io.stderr, {}
  io.stderr = { write = function(_, line) lines[#lines + 1] = line end } -- luacheck: ignore 122
  local ok, why = pcall(fn)
  io.stderr = real -- luacheck: ignore 122
  assert(ok, why)
  return lines
end

describe("a callback that raises", function()
  local kit = new_kit.each(before_each, after_each)

  local function new_test(way, options)
    local t = { notes = {}, arrivals = {} }

    function t.raise() way.raise() end

    function t.note(what) t.notes[#t.notes + 1] = what end

    function t.arrived(reason, is_right)
      if is_right == nil then is_right = way.is(reason) end
      t.arrivals[#t.arrivals + 1] = is_right
    end

    --- An error of nil would look like success, so there is another value for it.
    function t.arrived_as_error(err)
      if way.is_nil then t.arrived(nil, err ~= nil) else t.arrived(err) end
    end

    --- The reasons of these events arrive; or what they have in a field of theirs.
    function t.listen(kind, field)
      t.system.events:subscribe(function(event)
        if field then t.arrived(event.reason[field]) else t.arrived(event.reason) end
      end, kind)
    end

    --- Tells `ref` to raise, unless told otherwise, and then to go on.
    function t.send(ref, only)
      if not only then ref:tell("raise") end
      ref:tell("next")
    end

    t.kit = kit(options and options(t))
    t.system = t.kit.system
    return t
  end

  local function levels_logged()
    local levels = {}
    for _, record in ipairs(kit().logs) do
      if record.level == "warn" or record.level == "error" then
        levels[#levels + 1] = record.level
      end
    end
    return levels
  end

  for _, name in ipairs(sorted_keys(callbacks)) do
    local callback = callbacks[name]
    for _, what in ipairs(sorted_keys(ways)) do
      local way = ways[what]
      if callback.slow_too or not way.is_slow then
        it(("%s %s raises %s"):format(callback.id, name, what), function()
          local t = new_test(way, callback.options)

          local on_stderr = stderr_of(function()
            callback.run(t)
            t.kit:advance(100)
          end)

          local arrivals = {}
          for i = 1, callback.arrives do arrivals[i] = true end
          assert.are.same(callback.notes or { "next" }, t.notes)
          assert.are.same(callback.logs, levels_logged())
          assert.are.same(arrivals, t.arrivals)
          assert.are.equal(callback.on_stderr or 0, #on_stderr)
        end)
      end
    end
  end
end)

-- What runs out -----------------------------------------------------------------------------------

--- By name: a function that runs out of some stack, and what Lua says then.
local overflows = {
  ["plain recursion"] = { overflow, "stack overflow" },
  ["string.gsub"] = { overflow_c, "C stack overflow" },
}

local function add_overflow(name, text, make)
  local fn
  fn = make(function(...) return fn(...) end)
  overflows[name] = { fn, text }
end

add_overflow("pcall", "C stack overflow", function(again)
  return function() error(select(2, pcall(again)), 0) end
end)
add_overflow("table.sort", "C stack overflow", function(again)
  return function() table.sort({ 1, 2 }, again) end
end)
add_overflow("__index functions", "C stack overflow", function(again)
  return function() return setmetatable({}, { __index = again }).field end
end)
add_overflow("__close", "C stack overflow", function(again)
  return function() local _ <close> = closing(again) end
end)
add_overflow("__tostring", "C stack overflow", function(again)
  return function() return tostring(setmetatable({}, { __tostring = again })) end
end)
add_overflow("coroutine.wrap", "C stack overflow", function(again)
  return function() return coroutine.wrap(again)() end
end)
add_overflow("coroutine.resume", "C stack overflow", function(again)
  return function() error(select(2, coroutine.resume(coroutine.create(again))), 0) end
end)
add_overflow("nested parentheses", "C stack overflow", function()
  return function() assert(load("return " .. ("("):rep(300) .. (")"):rep(300))) end
end)
add_overflow("a chain of __index tables", "'__index' chain too long", function()
  return function()
    local chain = {}
    for _ = 1, 3000 do chain = setmetatable({}, { __index = chain }) end
    return chain.field
  end
end)
add_overflow("an error handler that raises", "error in error handling", function()
  return function()
    error(select(2, xpcall(error, function() error("in the handler") end, "first")), 0)
  end
end)
add_overflow("an error handler that overflows", "error in error handling", function()
  return function() error(select(2, xpcall(error, overflow, "first")), 0) end
end)

describe("a handler that runs out of stack", function()
  local kit = new_kit.each(before_each, after_each)

  --- Notes what it gets, with the number of its incarnation.
  local function counting(notes, fn)
    local incarnation = 0
    return {
      pre_start = function() incarnation = incarnation + 1 end,
      receive = function(actor, message)
        if message == "fail" then fn() end
        notes[#notes + 1] = ("%s %s%d"):format(actor.name, message, incarnation)
      end,
    }
  end

  for _, name in ipairs(sorted_keys(overflows)) do
    it("SUP-12 by " .. name .. " restarts that actor and nothing else", function()
      local fn, text = table.unpack(overflows[name])
      local notes, reasons, family = {}, {}, {}
      local parent = counting(notes)
      local start = parent.pre_start
      parent.pre_start = function(actor)
        start()
        for _, child_name in ipairs { "failing", "sibling" } do
          family[child_name] = actor:spawn(counting(notes, fn), child_name)
        end
      end
      parent.supervisor_strategy = troupe.one_for_one {
        decider = function(reason)
          reasons[#reasons + 1] = reason
          return "restart"
        end,
      }
      family.parent = kit().system:spawn(parent, "parent")
      kit():settle()

      family.failing:tell("fail")
      for _, member in ipairs { "failing", "sibling", "parent" } do
        family[member]:tell("next")
      end
      kit():settle()

      table.sort(notes)
      assert.are.same({ "failing next2", "parent next1", "sibling next1" }, notes)
      assert.are.equal(1, #reasons)
      assert.matches(text, reasons[1], 1, true)
      assert.are.equal(1, #kit().logs)
    end)
  end
end)

describe("a callback that runs out of memory", function()
  --- Each line: the callback, whether its event tells of the want of memory, and whether the next
  --- message was handled.
  local told = [[
receive: told, next
receive after a wait: told, next
pre_start: told, next
post_stop: told, next
pre_restart: told, next
decider: told, next
strategy: told, next
hash_key: told, next
subscriber: told, next
timer: told, next
task: told, next
__close: told, next
__close of a parked handler: told, next
]]

  it("SUP-12 has failed like any other", function()
    local output, status = child([[
      local troupe = require "troupe"
      local testkit = require "troupe.testkit"

      -- 2 GiB in one allocation, which fails at once.
      local block = ("x"):rep(1 << 24)
      local concatenate = load("local s = ... return " .. ("s .. "):rep(127) .. "s")
      local function exhaust() return concatenate(block) end

      local kit, told, handled

      local function spawn(act, hooks, options)
        hooks = hooks or {}
        hooks.receive = function(_, message)
          if message == "go" then return act() end
          handled = message
        end
        return kit.system:spawn(hooks, nil, options)
      end

      local function try(name, run)
        kit, told, handled = testkit.system("demo"), "not told", "nothing"
        for _, kind in ipairs { "actor_failed", "hook_failed" } do
          kit.system.events:subscribe(function(event)
            local reason = event.reason
            if troupe.is_error(reason, "ActorInitializationError") then reason = reason.cause end
            if reason == "not enough memory" then told = "told" end
          end, kind)
        end
        local ref = run() or spawn()
        kit:advance(10)
        ref:tell("next")
        kit:advance(10)
        for _, record in ipairs(kit.logs) do
          local traceback = tostring(record.fields.traceback)
          if traceback:find("not enough memory", 1, true) then told = "told" end
        end
        print(("%s: %s, %s"):format(name, told, handled))
        kit.system:terminate()
      end

      local function telling(ref)
        ref:tell("go")
        return ref
      end

      local function fail() error("a failure") end

      local function exhaust_once()
        local done = false
        return function()
          if done then return end
          done = true
          exhaust()
        end
      end

      try("receive", function() return telling(spawn(exhaust)) end)
      try("receive after a wait", function()
        return telling(spawn(function() troupe.sleep(1) exhaust() end))
      end)
      try("pre_start", function() return spawn(nil, { pre_start = exhaust_once() }) end)
      try("post_stop", function() spawn(nil, { post_stop = exhaust }):stop() end)
      try("pre_restart", function() return telling(spawn(fail, { pre_restart = exhaust })) end)
      try("decider", function()
        telling(spawn(fail, nil,
          { supervisor_strategy = troupe.one_for_one { decider = exhaust } }))
      end)
      try("strategy", function()
        local strategy = exhaust_once()
        return telling(kit.system:spawn(troupe.Router.custom(1,
          function(_, message) handled = message end, function(routees)
            strategy()
            return routees
          end)))
      end)
      try("hash_key", function()
        local exhausting = exhaust_once()
        return telling(kit.system:spawn(troupe.Router.consistent_hashing(1,
          function(_, message) handled = message end, { hash_key = function()
            exhausting()
            return "key"
          end })))
      end)
      try("subscriber", function()
        kit.system.events:subscribe(exhaust, "mine")
        kit.system.events:publish("mine")
      end)
      try("timer", function() kit.system:schedule_once(0, exhaust) end)
      try("task", function()
        if select(2, kit.system:go(exhaust):await()) == "not enough memory" then told = "told" end
      end)
      local function closing() return setmetatable({}, { __close = exhaust }) end
      try("__close", function()
        return telling(spawn(function() local _ <close> = closing() end))
      end)
      try("__close of a parked handler", function()
        local ref = telling(spawn(function()
          local _ <close> = closing()
          troupe.sleep(1000)
        end))
        kit:settle()
        ref:kill()
        return ref
      end)
    ]], 1000)

    assert.are.equal(told, output)
    assert.are.equal(0, status)
  end)
end)

-- Metamethods of messages -------------------------------------------------------------------------

describe("a message whose metamethods all raise", function()
  local kit = new_kit.each(before_each, after_each)

  --- The names of the metamethods that were called go to `touched`. A log shows messages as
  --- `tostring` does, so `__tostring` is none of them.
  local function touchy(touched)
    local meta = {}
    for _, name in ipairs {
      "__index", "__newindex", "__len", "__eq", "__lt", "__le", "__call", "__concat", "__unm",
      "__pairs", "__close",
    } do
      meta[name] = function()
        touched[#touched + 1] = name
        error("touched by " .. name)
      end
    end
    meta.__name = {}
    return setmetatable({}, meta)
  end

  local function echo(actor, message) actor:reply(message) end
  local function ignore() end

  --- By name: a way for a message to go; `check(m)` is to be called with it where it arrives.
  local ways_to_go = {
    ["tell"] = function(system, message, check)
      system:spawn(function(_, m) check(m) end):tell(message)
    end,
    ["ask and reply"] = function(system, message, check)
      check((system:spawn(echo):ask(message)))
    end,
    ["fail"] = function(system, message, check)
      check(select(2, system:spawn(function(actor, m) actor:fail(m) end):ask(message)))
    end,
    ["a timer"] = function(system, message, check)
      system:spawn({
        pre_start = function(actor) actor.timers:start_single(message, message, 1) end,
        receive = function(_, m) check(m) end,
      })
    end,
    ["a stash"] = function(system, message, check)
      local first = true
      local ref = system:spawn(function(actor, m)
        if m == "unstash" then return actor:unstash_all() end
        if not first then return check(m) end
        first = false
        actor:stash()
      end)
      ref:tell(message)
      ref:tell("unstash")
    end,
    ["a watch"] = function(system, message, check)
      local gone = system:spawn(ignore)
      gone:stop()
      system:spawn({
        pre_start = function(actor) actor:watch_with(gone, message) end,
        receive = function(_, m) check(m) end,
      })
    end,
    ["a task"] = function(system, message, check)
      check(system:go(function(m) return m end, message):await())
    end,
    ["a failure"] = function(system, message, check)
      system:spawn({
        receive = function(_, m) error(m) end,
        pre_restart = function(_, reason, m)
          check(reason)
          check(m)
        end,
      }):tell(message)
    end,
    ["a full mailbox"] = function(system, message, check)
      system.events:subscribe(function(event) check(event.message) end, "message_dropped")
      local full = system:spawn(ignore, nil, { mailbox = { capacity = 1 } })
      full:tell(message)
      full:tell("newer")
    end,
    ["a dead letter"] = function(system, message, check)
      system.events:subscribe(function(event) check(event.message) end, "dead_letter")
      local gone = system:spawn(ignore)
      gone:stop()
      gone:tell(message)
    end,
    ["a strategy"] = function(system, message, check)
      system:spawn(troupe.Router.custom(1, ignore, function(routees, state)
        check(state.message)
        return routees
      end)):tell(message)
    end,
    ["hash_key"] = function(system, message, check)
      system:spawn(troupe.Router.consistent_hashing(1, ignore, { hash_key = function(m)
        check(m)
        return "key"
      end })):tell(message)
    end,
    ["troupe.is and troupe.is_error"] = function(_, message, check)
      assert(not troupe.is(message, touchy({})) and not troupe.is(message, troupe.Terminated))
      assert(not troupe.is_error(message) and not troupe.is_error(message, "AskTimeoutError"))
      check(message)
    end,
    ["a scatter"] = function(system, message, check)
      check((system:spawn(troupe.Router.scatter_gather_first_completed(2, echo)):ask(message)))
    end,
  }
  for _, strategy in ipairs { "round_robin", "random", "broadcast", "smallest_mailbox" } do
    ways_to_go["Router.group by " .. strategy] = function(system, message, check)
      local member = system:spawn(function(_, m) check(m) end)
      system:spawn(troupe.Router.group(strategy, { member })):tell(message)
    end
  end
  for _, factory in ipairs { "round_robin", "random", "broadcast", "smallest_mailbox" } do
    ways_to_go["Router." .. factory] = function(system, message, check)
      system:spawn(troupe.Router[factory](2, function(_, m) check(m) end)):tell(message)
    end
    ways_to_go["a Broadcast through Router." .. factory] = function(system, message, check)
      system:spawn(troupe.Router[factory](2, function(_, m) check(m) end))
        :tell(troupe.Broadcast(message))
    end
  end

  for _, name in ipairs(sorted_keys(ways_to_go)) do
    it("TELL-6 arrives untouched by way of " .. name, function()
      local touched, arrived = {}, 0
      local message = touchy(touched)

      ways_to_go[name](kit().system, message, function(m)
        assert(rawequal(m, message))
        arrived = arrived + 1
      end)
      kit():advance(1)

      assert.is_true(arrived > 0)
      assert.are.same({}, touched)
    end)
  end
end)
