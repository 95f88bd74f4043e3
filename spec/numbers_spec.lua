--- Every option and argument that takes a number, given numbers of all kinds: which are refused, by
--- an error at the caller's line, and that those which are accepted work.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"
local testkit = require "troupe.testkit"

local Router = troupe.Router

-- What is given -----------------------------------------------------------------------------------

--- In the order they are tried; `got` is how an error may show it.
local given = {
  { name = "0", value = 0, got = { "0" } },
  { name = "-0.0", value = -0.0, got = { "-0.0" } },
  { name = "1", value = 1 },
  { name = "3.0", value = 3.0, got = { "3.0" } },
  { name = "1.5", value = 1.5, got = { "1.5" } },
  { name = "-1", value = -1, got = { "-1" } },
  { name = "NaN", value = 0 / 0, got = { "nan", "-nan" } },
  { name = "inf", value = math.huge, got = { "inf" } },
  { name = "-inf", value = -math.huge, got = { "-inf" } },
  { name = "2^31", value = 2 ^ 31, got = { "2147483648", "2147483648.0" } },
  { name = "2^53", value = 2 ^ 53, got = { "9007199254740992", tostring(2 ^ 53) } },
  { name = "maxinteger", value = math.maxinteger, got = { tostring(math.maxinteger) } },
  { name = "mininteger", value = math.mininteger, got = { tostring(math.mininteger) } },
  { name = "a string", value = "3", got = { '"3"', "string" } },
  { name = "a table", value = {}, got = { "a table", "table" } },
  { name = "nil", value = nil, got = { "nil", "no value" } },
}

--- Spans of time; a few of them last longer than anybody waits.
local DURATION = { "1", "3.0", "1.5", "2^31", "2^53", "maxinteger" }
local SPAN = { "0", "-0.0", table.unpack(DURATION) }
local COUNT = { "1", "3.0", "2^31", "2^53", "maxinteger" }
local RESTARTS = { "0", "-0.0", "-1", "nil", table.unpack(COUNT) }
local ANY_INTEGER = { "0", "-0.0", "1", "3.0", "-1", "2^31", "2^53", "maxinteger", "mininteger" }

local function with(names, ...)
  local all = { table.unpack(names) }
  for _, name in ipairs { ... } do all[#all + 1] = name end
  return all
end

-- Whether it works --------------------------------------------------------------------------------

local LONGEST, FOR_AGES, STEP = 2 ^ 31, 2 ^ 40, 0.5

local function ignore() end
local function wait_for_ages() troupe.sleep(FOR_AGES) end

--- What `begin(done)` begins calls `done` after `ms`: not earlier, and not later. What lasts longer
--- than anybody waits is not over after ages, and the system can be stopped.
local function lasts(kit, ms, begin)
  local over = false
  begin(function() over = true end)
  if ms > LONGEST then
    kit:advance(FOR_AGES)
    assert.is_false(over)
  else
    kit:advance(math.max(ms - STEP, 0))
    assert.are.equal(ms == 0, over)
    kit:advance(STEP)
    assert.is_true(over)
  end
  kit.system:terminate()
end

--- The same for a wait in a task.
local function waits(kit, ms, wait)
  lasts(kit, ms, function(done)
    kit:async(function()
      wait()
      done()
    end)
  end)
end

--- The same for what tells an actor; `start(actor)` starts it.
local function tells(kit, ms, start)
  lasts(kit, ms, function(done)
    kit.system:spawn({ pre_start = start, receive = done })
    kit:settle()
  end)
end

--- The same again and again.
local function repeats(kit, ms, begin)
  if ms > LONGEST then return lasts(kit, ms, begin) end
  local times = {}
  begin(function() times[#times + 1] = kit:now() end)
  kit:advance(3 * ms)
  assert.are.same({ ms, 2 * ms, 3 * ms }, times)
  kit.system:terminate()
end

local function tells_repeatedly(kit, ms, start)
  repeats(kit, ms, function(done)
    kit.system:spawn({ pre_start = start, receive = done })
    kit:settle()
  end)
end

--- Two actors with much mail: the first one handles so many messages before the other has its turn.
local function share_of_a_turn(kit, options)
  local handled, share = 0, nil
  local first = kit.system:spawn(function() handled = handled + 1 end, nil, options)
  local other = kit.system:spawn(function() share = share or handled end)
  kit:settle()
  for _ = 1, 100 do first:tell("mail") end
  other:tell("mail")
  kit:settle()
  return share
end

--- Where a random pool of a system with that seed sends its mail.
local function picks(seed)
  local system <close> = testkit.system("numbers", { seed = seed }).system
  local names = {}
  local pool = system:spawn(Router.random(8, function(actor) names[#names + 1] = actor.name end))
  for _ = 1, 20 do pool:tell("mail") end
  system:run()
  return names
end

local function routees(kit, behavior)
  kit.system:spawn(behavior, "pool")
  kit:settle()
  return #kit.system:actor_selection("/user/pool/*"):resolve()
end

--- How many times an actor that fails again and again is restarted.
local function restarts(kit, strategy)
  local started = 0
  local ref = kit.system:spawn({
    pre_start = function() started = started + 1 end,
    receive = function() error("a failure") end,
  }, nil, { supervisor_strategy = strategy })
  for _ = 1, 20 do ref:tell("fail") end
  kit:settle()
  return started - 1
end

--- Whether an actor that may restart once within a time is alive after two failures.
local function survives(kit, strategy, ms_between)
  local ref = kit.system:spawn(function() error("a failure") end, nil,
    { supervisor_strategy = strategy })
  ref:tell("fail")
  kit:advance(ms_between)
  ref:tell("fail")
  kit:settle()
  return ref:await_stop(1) == nil
end

--- Tells an actor that has stopped.
local function lose(kit, count)
  local gone = kit.system:spawn(ignore, "gone")
  gone:stop()
  kit:settle()
  for _ = 1, count do gone:tell("mail") end
  kit:settle()
end

--- A backoff supervisor whose child calls `came_back` whenever it does.
local function spawn_backoff(kit, options, came_back)
  options.child = {
    post_restart = came_back,
    receive = function() error("a failure") end,
  }
  return kit.system:spawn(troupe.backoff_supervisor(options))
end

--- The child of a backoff supervisor is away for so long.
local function comes_back_after(kit, ms, options)
  options.random_factor = 0
  lasts(kit, ms, function(done)
    spawn_backoff(kit, options, done):tell("fail")
    kit:settle()
  end)
end

--- How long the child is away after a failure: the first one, or another one so long after it came
--- back from the first.
local function time_away(kit, options, lived_ms)
  local back_at
  local ref = spawn_backoff(kit, options, function() back_at = kit:now() end)
  ref:tell("fail")
  if lived_ms then
    kit:advance(options.min_backoff_ms)
    kit:advance(lived_ms)
    ref:tell("fail")
  end
  local failed_at = kit:now()
  kit:advance(1000)
  ref:stop()
  return back_at - failed_at
end

--- `retry` waits for so long, all in all.
local function retries_for(kit, ms, options)
  waits(kit, ms, function()
    troupe.retry(function(attempt)
      if attempt < options.attempts then return nil, "a failure" end
      return true
    end, options)
  end)
end

-- The options -------------------------------------------------------------------------------------

--- One for each option or argument:
---   id, name   for the title
---   where      the function, as its errors name it; `option` what they say must be what
---   says       what an error says of the range, or one of several
---   fine       the names of those that are accepted; all the others are refused
---   give       the call; `kit` is the test's, with the options `system` if there are such; `actor`
---              is that of an actor in its handler
---   works      sees that a value which is accepted is what counts: `v` as it is given, `is` the
---              same but for nil, which is `default`; `new` gives the test's kit, with options
---   in_handler whether `give` is called in a handler
local options = {}

local function add(option) options[#options + 1] = option end

add {
  id = "DISP-1", name = "throughput of a system", where = "system", option = "throughput",
  says = "from 1 to 1000000", fine = { "1", "3.0", "nil" }, default = 32,
  give = function(v) testkit.system("numbers", { throughput = v }) end,
  works = function(new, v, is) assert.are.equal(is, share_of_a_turn(new { throughput = v })) end,
}

add {
  id = "DISP-1", name = "throughput of an actor", where = "spawn", option = "throughput",
  says = "from 1 to 1000000", fine = { "1", "3.0", "nil" }, default = 32,
  give = function(v, kit) kit.system:spawn(ignore, nil, { throughput = v }) end,
  works = function(new, v, is)
    assert.are.equal(is, share_of_a_turn(new(), { throughput = v }))
  end,
}

add {
  id = "SYS-5", name = "drain_timeout_ms", where = "system", option = "drain_timeout_ms",
  says = "of at least 0", fine = with(SPAN, "nil"), default = 2000,
  give = function(v) testkit.system("numbers", { drain_timeout_ms = v }) end,
  works = function(new, v, is)
    local kit = new { drain_timeout_ms = v }
    kit.system:spawn(wait_for_ages):tell("wait")
    kit:settle()
    kit.system:terminate()
    assert.are.equal(math.min(is, FOR_AGES), kit:now())
  end,
}

add {
  id = "TK-1", name = "seed", where = "system", option = "seed",
  says = "an integer", fine = with(ANY_INTEGER, "nil"), default = 1,
  give = function(v) testkit.system("numbers", { seed = v }) end,
  works = function(_, v, is)
    local seed = math.tointeger(is)
    assert.are.same(picks(seed), picks(v))
    assert.are_not.same(picks(seed ~ 1), picks(v))
  end,
}

add {
  id = "MBX-2", name = "mailbox.capacity", where = "spawn", option = "mailbox.capacity",
  says = "from 1 to 2147483648", fine = { "1", "3.0", "2^31" },
  give = function(v, kit) kit.system:spawn(ignore, nil, { mailbox = { capacity = v } }) end,
  works = function(new, v, is)
    local handled = 0
    local ref = new().system:spawn(function() handled = handled + 1 end, nil,
      { mailbox = { capacity = v } })
    for _ = 1, 5 do ref:tell("mail") end
    new():settle()
    assert.are.equal(math.min(is, 5), handled)
  end,
}

add {
  id = "STASH-1", name = "stash_capacity", where = "spawn", option = "stash_capacity",
  says = "from 1 to 2147483648", fine = { "1", "3.0", "2^31", "nil" }, default = 1024,
  give = function(v, kit) kit.system:spawn(ignore, nil, { stash_capacity = v }) end,
  works = function(new, v, is)
    local stashed = 0
    local ref = new().system:spawn(function(actor)
      if pcall(actor.stash, actor) then stashed = stashed + 1 end
    end, nil, { stash_capacity = v })
    for _ = 1, 2000 do ref:tell("mail") end
    new():settle()
    assert.are.equal(math.min(is, 2000), stashed)
  end,
}

add {
  id = "ASK-1", name = "timeout_ms of ask", where = "ask", option = "timeout_ms",
  fine = with(DURATION, "nil"), default = 5000,
  give = function(v, kit) kit.system:spawn(ignore, "mute"):ask("hello", v) end,
  works = function(new, v, is)
    local mute = new().system:spawn(ignore)
    waits(new(), is, function() mute:ask("hello", v) end)
  end,
}

add {
  id = "ASK-11", name = "timeout_ms of await", where = "await", option = "timeout_ms",
  fine = with(DURATION, "nil"), default = math.huge,
  give = function(v, kit) kit.system:go(ignore):await(v) end,
  works = function(new, v, is)
    local endless = new():async(function() while true do wait_for_ages() end end)
    waits(new(), is, function() endless:await(v) end)
  end,
}

add {
  id = "WATCH-5", name = "timeout_ms of await_stop", where = "await_stop", option = "timeout_ms",
  fine = DURATION,
  give = function(v, kit) kit.system:spawn(ignore, "alive"):await_stop(v) end,
  works = function(new, v, is)
    local alive = new().system:spawn(ignore)
    waits(new(), is, function() alive:await_stop(v) end)
  end,
}

add {
  id = "SEL-1", name = "timeout_ms of resolve_one", where = "resolve_one", option = "timeout_ms",
  fine = with(DURATION, "nil"), default = 1000,
  give = function(v, kit) kit.system:actor_selection("/user/nobody"):resolve_one(v) end,
  works = function(new, v, is)
    local nobody = new().system:actor_selection("/user/nobody")
    waits(new(), is, function() nobody:resolve_one(v) end)
  end,
}

add {
  id = "STOP-5", name = "timeout_ms of graceful_stop", where = "graceful_stop",
  option = "timeout_ms", fine = DURATION,
  give = function(v, kit) troupe.graceful_stop(kit.system:spawn(ignore), v) end,
  works = function(new, v, is)
    local busy = new { drain_timeout_ms = 0 }.system:spawn(wait_for_ages)
    busy:tell("wait")
    waits(new(), is, function() assert.is_false(troupe.graceful_stop(busy, v)) end)
  end,
}

add {
  id = "PAT-1", name = "ms of sleep", where = "sleep", option = "ms", fine = SPAN,
  in_handler = true,
  give = function(v) troupe.sleep(v) end,
  works = function(new, v, is) waits(new(), is, function() troupe.sleep(v) end) end,
}

add {
  id = "TMR-7", name = "ms of set_receive_timeout", where = "set_receive_timeout", option = "ms",
  fine = with(DURATION, "nil"), default = math.huge, in_handler = true,
  give = function(v, _, actor) actor:set_receive_timeout(v) end,
  works = function(new, v, is)
    tells_repeatedly(new(), is, function(actor) actor:set_receive_timeout(v) end)
  end,
}

add {
  id = "TMR-4", name = "delay of start_single", where = "timers:start_single", option = "delay",
  fine = SPAN, in_handler = true,
  give = function(v, _, actor) actor.timers:start_single("key", "tick", v) end,
  works = function(new, v, is)
    tells(new(), is, function(actor) actor.timers:start_single("key", "tick", v) end)
  end,
}

add {
  id = "TMR-4", name = "delay of schedule_once", where = "schedule_once", option = "delay",
  fine = SPAN,
  give = function(v, kit) kit.system:schedule_once(v, ignore) end,
  works = function(new, v, is)
    lasts(new(), is, function(done) new().system:schedule_once(v, done) end)
  end,
}

add {
  id = "TMR-4", name = "interval of schedule_every", where = "schedule_every",
  option = "interval", fine = DURATION,
  give = function(v, kit) kit.system:schedule_every(v, ignore) end,
  works = function(new, v, is)
    repeats(new(), is, function(done) new().system:schedule_every(v, done) end)
  end,
}

add {
  id = "TMR-4", name = "initial of schedule_every", where = "schedule_every", option = "initial",
  fine = with(SPAN, "nil"), default = 7,
  give = function(v, kit) kit.system:schedule_every(7, ignore, v) end,
  works = function(new, v, is)
    lasts(new(), is, function(done)
      local timer
      timer = new().system:schedule_every(7, function()
        done()
        timer:cancel()
      end, v)
    end)
  end,
}

add {
  id = "TK-1", name = "ms of advance", where = "advance", option = "ms", fine = SPAN,
  give = function(v, kit) kit:advance(v) end,
  works = function(new, v, is)
    local fired = false
    new().system:schedule_once(math.min(is, FOR_AGES), function() fired = true end)
    new():advance(v)
    assert.is_true(fired)
    if is <= LONGEST then assert.are.equal(is, new():now()) end
  end,
}

add {
  id = "TK-2", name = "ms of expect_none", where = "expect_none", option = "ms",
  fine = { "1", "3.0", "1.5", "2^31" }, says = { "a positive finite number of at most" },
  give = function(v, kit) kit:probe():expect_none(v) end,
  works = function(new, v)
    new():probe():expect_none(v)
    assert.are.equal(v, new():now())
  end,
}

add {
  id = "TK-2", name = "n of receive_n", where = "receive_n", option = "n",
  says = "of at least 1", fine = COUNT,
  give = function(v, kit) kit:probe():receive_n(v) end,
  works = function(new, v)
    local probe = new():probe()
    for i = 1, 5 do probe.ref:tell(i) end
    if v <= 5 then return assert.are.equal(v, #probe:receive_n(v)) end
    local text = raised_here(function() probe:receive_n(v) end)
    assert.matches(("expected %d messages"):format(v), text, 1, true)
  end,
}

for _, timer in ipairs { "start_fixed_delay", "start_fixed_rate" } do
  add {
    id = "TMR-4", name = "interval of " .. timer, where = "timers:" .. timer, option = "interval",
    fine = DURATION, in_handler = true,
    give = function(v, _, actor) actor.timers[timer](actor.timers, "key", "tick", v) end,
    works = function(new, v, is)
      tells_repeatedly(new(), is, function(actor)
        actor.timers[timer](actor.timers, "key", "tick", v)
      end)
    end,
  }
  add {
    id = "TMR-4", name = "initial of " .. timer, where = "timers:" .. timer, option = "initial",
    fine = with(SPAN, "nil"), default = 2 ^ 31, in_handler = true,
    give = function(v, _, actor) actor.timers[timer](actor.timers, "key", "tick", 2 ^ 31, v) end,
    works = function(new, v, is)
      tells(new(), is, function(actor)
        actor.timers[timer](actor.timers, "key", "tick", 2 ^ 31, v)
      end)
    end,
  }
end

add {
  id = "TK-3", name = "seeds of explore", where = "explore", option = "seeds",
  says = "of at least 1", fine = with(COUNT, "nil"), default = 100,
  give = function(v, kit) kit:explore(ignore, { seeds = v }) end,
  works = function(new, v, is)
    local runs = 0
    local ok = pcall(new().explore, new(), function()
      runs = runs + 1
      assert(runs < 200)
    end, { seeds = v })
    assert.are.equal(is < 200, ok)
    assert.are.equal(math.min(is, 200), runs)
  end,
}

add {
  id = "TK-3", name = "first of explore", where = "explore", option = "first",
  says = "an integer", fine = with(ANY_INTEGER, "nil"), default = 1,
  give = function(v, kit) kit:explore(ignore, { first = v }) end,
  works = function(new, v, is)
    local text = raised_here(function() new():explore(error, { first = v }) end)
    assert.matches(("seed %d fails"):format(is), text, 1, true)
  end,
}

for _, factory in ipairs {
  "round_robin", "random", "broadcast", "smallest_mailbox", "scatter_gather_first_completed",
} do
  add {
    id = "RTR-2", name = "size of " .. factory, where = "Router." .. factory, option = "size",
    says = "an integer from 1 to 1000000", fine = { "1", "3.0" },
    give = function(v) Router[factory](v, ignore) end,
    works = function(new, v) assert.are.equal(v, routees(new(), Router[factory](v, ignore))) end,
  }
end

add {
  id = "RTR-2", name = "size of custom", where = "Router.custom", option = "size",
  says = "an integer from 1 to 1000000", fine = { "1", "3.0" },
  give = function(v) Router.custom(v, ignore, ignore) end,
  works = function(new, v)
    assert.are.equal(v, routees(new(), Router.custom(v, ignore, ignore)))
  end,
}

for _, message in ipairs { "AddRoutees", "RemoveRoutees" } do
  add {
    id = "RTR-15", name = "n of " .. message, where = message, option = "n",
    says = "from 1 to 1000000", fine = { "1", "3.0" },
    give = function(v) troupe[message](v) end,
    works = function(new, v, is)
      local size = new().system:spawn(Router.random(5, ignore)):ask(troupe[message](v))
      assert.are.equal(message == "AddRoutees" and 5 + is or 5 - is, size)
    end,
  }
end

--- A pool whose routees are busy with their first message.
local function resized(kit, size, resizer)
  local function work() troupe.sleep(1) end
  local pool = kit.system:spawn(Router.round_robin(size, work, nil, { resizer = resizer }))
  kit:settle()
  return pool
end

local function size_of(pool) return #pool:ask(troupe.GetRoutees) end

local function tell_times(kit, pool, count)
  for _ = 1, count do
    pool:tell("mail")
    kit:settle()
  end
end

local function add_resizer_option(row)
  local option = row.option
  row.id, row.name, row.where = "RTR-18", option .. " of a resizer", "Router.round_robin"
  row.option = "resizer." .. option
  row.give = function(v) Router.round_robin(2, ignore, nil, { resizer = { [option] = v } }) end
  add(row)
end

add_resizer_option {
  option = "lower_bound", says = "from 1 to 1000000", fine = { "1", "3.0", "nil" }, default = 1,
  works = function(new, v, is)
    local pool = resized(new(), 5, { lower_bound = v, backoff_rate = 1 })
    tell_times(new(), pool, 1)
    assert.are.equal(is, size_of(pool))
  end,
}

add_resizer_option {
  option = "upper_bound", says = "from 1 to 1000000", fine = { "1", "3.0", "nil" }, default = 10,
  works = function(new, v, is)
    local pool = resized(new(), 20, { upper_bound = v })
    tell_times(new(), pool, 1)
    assert.are.equal(is, size_of(pool))
  end,
}

add_resizer_option {
  option = "pressure_threshold", says = "from 0 to 2147483648",
  fine = { "0", "-0.0", "1", "3.0", "2^31", "nil" }, default = 1,
  works = function(new, v, is)
    local pool = resized(new(), 1, { pressure_threshold = v, messages_per_resize = 1 })
    local grows_at = math.min(is + 2, 100) -- one is in hand by then, and so many wait
    tell_times(new(), pool, grows_at - 1)
    assert.are.equal(1, size_of(pool))
    tell_times(new(), pool, 1)
    assert.are.equal(is == 2 ^ 31 and 1 or 2, size_of(pool))
  end,
}

add_resizer_option {
  option = "rampup_rate", says = "of at least 0",
  fine = { "0", "-0.0", "1", "3.0", "1.5", "2^31", "2^53", "maxinteger", "nil" }, default = 0.2,
  works = function(new, v, is)
    local pool = resized(new(), 2, {
      rampup_rate = v, upper_bound = 100, backoff_rate = 0, pressure_threshold = 0,
      messages_per_resize = 2,
    })
    tell_times(new(), pool, 3)
    assert.are.equal(math.min(2 + math.ceil(2.0 * is), 100), size_of(pool))
  end,
}

add_resizer_option {
  option = "backoff_threshold", says = "from 0 to 1", fine = { "0", "-0.0", "1", "nil" },
  default = 0.3,
  works = function(new, v, is)
    for busy = 0, 9 do
      local pool = resized(new(), 10, { backoff_threshold = v, pressure_threshold = 0 })
      for i, routee in ipairs(pool:ask(troupe.GetRoutees)) do
        if i <= busy then routee:tell("mail") end
      end
      new():settle()
      tell_times(new(), pool, 1)
      assert.are.equal(busy / 10 < is and 9 or 10, size_of(pool))
    end
  end,
}

add_resizer_option {
  option = "backoff_rate", says = "from 0 to 1", fine = { "0", "-0.0", "1", "nil" }, default = 0.1,
  works = function(new, v, is)
    local pool = resized(new(), 10, { backoff_rate = v })
    tell_times(new(), pool, 1)
    assert.are.equal(math.max(10 - math.ceil(10 * is), 1), size_of(pool))
  end,
}

add_resizer_option {
  option = "messages_per_resize", says = "from 1 to 2147483648",
  fine = { "1", "3.0", "2^31", "nil" }, default = 10,
  works = function(new, v, is)
    local pool = resized(new(), 100, {
      messages_per_resize = v, upper_bound = 100, backoff_rate = 0.001,
    })
    tell_times(new(), pool, 21)
    assert.are.equal(100 - (1 + 20 // is), size_of(pool))
  end,
}

add {
  id = "RTR-2", name = "size of consistent_hashing", where = "Router.consistent_hashing",
  option = "size",
  says = "an integer from 1 to 1000000", fine = { "1", "3.0" },
  give = function(v) Router.consistent_hashing(v, ignore, { hash_key = ignore }) end,
  works = function(new, v)
    assert.are.equal(v, routees(new(), Router.consistent_hashing(v, ignore, { hash_key = ignore })))
  end,
}

for _, factory in ipairs { "one_for_one", "all_for_one" } do
  add {
    id = "SUP-5", name = "max_restarts of " .. factory, where = factory, option = "max_restarts",
    says = "of at least -1", fine = RESTARTS, default = 10,
    give = function(v) troupe[factory] { max_restarts = v } end,
    works = function(new, v, is)
      assert.are.equal(is == -1 and 20 or math.min(is, 20),
        restarts(new(), troupe[factory] { max_restarts = v }))
    end,
  }
  add {
    id = "SUP-5", name = "within_ms of " .. factory, where = factory, option = "within_ms",
    fine = with(DURATION, "inf", "nil"), default = 60000,
    give = function(v) troupe[factory] { within_ms = v } end,
    works = function(new, v, is)
      local strategy = troupe[factory] { max_restarts = 1, within_ms = v }
      local is_endless = is > LONGEST
      assert.is_false(survives(new(), strategy, is_endless and FOR_AGES or is - STEP))
      if not is_endless then assert.is_true(survives(new(), strategy, is)) end
    end,
  }
end

add {
  id = "SG-6", name = "timeout_ms of a scatter", where = "Router.scatter_gather_first_completed",
  option = "timeout_ms", fine = with(DURATION, "nil"), default = 4500,
  give = function(v) Router.scatter_gather_first_completed(2, ignore, { timeout_ms = v }) end,
  works = function(new, v, is)
    local pool = new().system:spawn(
      Router.scatter_gather_first_completed(2, ignore, { timeout_ms = v }))
    waits(new(), is, function() pool:ask("hello", math.maxinteger) end)
  end,
}

--- A probe takes what comes just before its time is over.
local function takes_mail(kit, give, v, is)
  local comes_at = math.min(is, FOR_AGES) - STEP
  kit.system:schedule_once(comes_at, function()
    kit.system:actor_selection("/user/probe"):tell("mail")
  end)
  give(v, kit)
  assert.are.equal(comes_at, kit:now())
end

for name, give in pairs {
  expect = function(v, kit) kit:probe("probe"):expect("mail", v) end,
  expect_match = function(v, kit) kit:probe("probe"):expect_match(rawlen, v) end,
  fish = function(v, kit) kit:probe("probe"):fish(rawlen, v) end,
  receive_n = function(v, kit) kit:probe("probe"):receive_n(1, v) end,
} do
  add {
    id = "TK-2", name = "timeout_ms of " .. name, where = name, option = "timeout_ms",
    fine = with(DURATION, "nil"), default = 3000, give = give,
    works = function(new, v, is) takes_mail(new(), give, v, is) end,
  }
end

add {
  id = "DL-5", name = "dead_letters.keep", where = "system", option = "dead_letters.keep",
  says = "of at least 1", fine = COUNT,
  give = function(v) testkit.system("numbers", { dead_letters = { keep = v } }) end,
  works = function(new, v)
    lose(new { dead_letters = { keep = v } }, 5)
    assert.are.equal(math.min(v, 5), new().system.dead_letters:count())
  end,
}

for _, method in ipairs { "list", "replay" } do
  add {
    id = "DL-5", name = "limit of dead_letters:" .. method, where = "dead_letters:" .. method,
    option = "limit", says = "of at least 1", fine = with(COUNT, "nil"), default = 5,
    system = { dead_letters = { keep = 10 } },
    give = function(v, kit)
      local letters = kit.system.dead_letters
      letters[method](letters, { limit = v })
    end,
    works = function(new, v, is)
      local letters = new().system.dead_letters
      lose(new(), 5)
      new().system:spawn(ignore, "gone")
      local result = letters[method](letters, { limit = v })
      assert.are.equal(math.min(is, 5), type(result) == "table" and #result or result)
    end,
  }
end

--- What is shown of a metric that one call is made of.
local function sample(kit, name)
  return tonumber(kit.system.metrics:render():match("\n" .. name .. " (%S+)\n"))
end

local FINITE = with(ANY_INTEGER, "1.5")

for _, call in ipairs {
  {
    kind = "counter", method = "inc", fine = with(SPAN, "nil"), default = 1, says = "of at least 0",
  },
  { kind = "gauge", method = "inc", fine = with(FINITE, "nil"), default = 1 },
  { kind = "gauge", method = "dec", fine = with(FINITE, "nil"), default = 1, sign = -1.0 },
  { kind = "gauge", method = "set", fine = with(FINITE, "NaN", "inf", "-inf"), option = "value" },
  { kind = "histogram", method = "observe", fine = FINITE, option = "value", part = "_sum" },
} do
  local name = call.kind == "counter" and "made_total" or "made"
  local function made(kit)
    return kit.system.metrics[call.kind](kit.system.metrics, name, "Made.")
  end
  add {
    id = "MET-2", name = ("%s of %s:%s"):format(call.option or "n", call.kind, call.method),
    where = call.kind .. ":" .. call.method, option = call.option or "n",
    says = call.says, fine = call.fine, default = call.default,
    system = { metrics = true },
    give = function(v, kit)
      local metric = made(kit)
      metric[call.method](metric, v)
    end,
    works = function(new, v, is)
      local metric = made(new())
      metric[call.method](metric, v)
      local value = sample(new(), name .. (call.part or ""))
      local is_finite = is - is == 0
      if is_finite then assert.are.equal((call.sign or 1.0) * is, value + 0.0) end
    end,
  }
end

add {
  id = "CB-1", name = "max_failures", where = "circuit_breaker", option = "max_failures",
  says = "of at least 1", fine = COUNT,
  give = function(v) troupe.circuit_breaker { max_failures = v, reset_timeout_ms = 1 } end,
  works = function(new, v)
    local breaker = troupe.circuit_breaker { max_failures = v, reset_timeout_ms = 1000 }
    local calls = 0
    for _ = 1, 20 do
      new():async(function()
        breaker:call(function()
          calls = calls + 1
          return nil, "a failure"
        end)
      end)
    end
    assert.are.equal(math.min(v, 20), calls)
  end,
}

add {
  id = "CB-1", name = "reset_timeout_ms", where = "circuit_breaker", option = "reset_timeout_ms",
  fine = DURATION,
  give = function(v) troupe.circuit_breaker { max_failures = 1, reset_timeout_ms = v } end,
  works = function(new, v)
    local breaker = troupe.circuit_breaker { max_failures = 1, reset_timeout_ms = v }
    new():async(function() breaker:call(function() return nil, "a failure" end) end)
    assert.are.equal("open", breaker:state())
    new():advance(v > LONGEST and FOR_AGES or v - STEP)
    assert.are.equal("open", breaker:state())
    new():advance(STEP)
    assert.are.equal(v > LONGEST and "open" or "half-open", breaker:state())
  end,
}

add {
  id = "CB-1", name = "call_timeout_ms", where = "circuit_breaker", option = "call_timeout_ms",
  fine = with(DURATION, "nil"), default = math.huge,
  give = function(v)
    troupe.circuit_breaker { max_failures = 1, reset_timeout_ms = 1, call_timeout_ms = v }
  end,
  works = function(new, v, is)
    local breaker = troupe.circuit_breaker {
      max_failures = 1, reset_timeout_ms = 1, call_timeout_ms = v,
    }
    waits(new(), is, function()
      breaker:call(function() while true do wait_for_ages() end end)
    end)
  end,
}

add {
  id = "BOS-1", name = "min_backoff_ms", where = "backoff_supervisor", option = "min_backoff_ms",
  fine = DURATION,
  give = function(v)
    troupe.backoff_supervisor { child = ignore, min_backoff_ms = v, max_backoff_ms = 2 ^ 63 }
  end,
  works = function(new, v)
    comes_back_after(new(), v, { min_backoff_ms = v, max_backoff_ms = 2 ^ 63 })
  end,
}

add {
  id = "BOS-1", name = "max_backoff_ms", where = "backoff_supervisor", option = "max_backoff_ms",
  fine = DURATION,
  give = function(v)
    troupe.backoff_supervisor { child = ignore, min_backoff_ms = 0.5, max_backoff_ms = v }
  end,
  works = function(new, v)
    comes_back_after(new(), v, { min_backoff_ms = v, max_backoff_ms = v })
  end,
}

add {
  id = "BOS-1", name = "random_factor", where = "backoff_supervisor", option = "random_factor",
  says = "from 0 to 1", fine = { "0", "-0.0", "1", "nil" }, default = 0.2,
  give = function(v)
    troupe.backoff_supervisor {
      child = ignore, min_backoff_ms = 1, max_backoff_ms = 2, random_factor = v,
    }
  end,
  works = function(new, v, is)
    local least, most = math.huge, 0
    for _ = 1, 100 do
      local away = time_away(new(), {
        min_backoff_ms = 100, max_backoff_ms = 1000, random_factor = v,
      })
      least, most = math.min(least, away), math.max(most, away)
    end
    local spread = 100 * is
    assert.is_true(least >= 100 - spread and most <= 100 + spread)
    assert.is_true(least <= 100 - 0.8 * spread and most >= 100 + 0.8 * spread)
  end,
}

add {
  id = "BOS-1", name = "reset_after_ms", where = "backoff_supervisor", option = "reset_after_ms",
  fine = with(DURATION, "nil"), default = 10,
  give = function(v)
    troupe.backoff_supervisor {
      child = ignore, min_backoff_ms = 1, max_backoff_ms = 2, reset_after_ms = v,
    }
  end,
  works = function(new, v, is)
    local backoff = {
      min_backoff_ms = 10, max_backoff_ms = 1000, random_factor = 0, reset_after_ms = v,
    }
    local is_endless = is > LONGEST
    assert.are.equal(20, time_away(new(), backoff, is_endless and FOR_AGES or is - STEP))
    if not is_endless then assert.are.equal(10, time_away(new(), backoff, is)) end
  end,
}

add {
  id = "BOS-1", name = "stash_capacity of a backoff supervisor", where = "backoff_supervisor",
  option = "stash_capacity", says = "from 1 to 2147483648",
  fine = { "1", "3.0", "2^31", "nil" }, default = 1000,
  give = function(v)
    troupe.backoff_supervisor {
      child = ignore, min_backoff_ms = 1, max_backoff_ms = 2, stash_capacity = v,
    }
  end,
  works = function(new, v, is)
    local handled = 0
    local ref = new().system:spawn(troupe.backoff_supervisor {
      min_backoff_ms = 10, max_backoff_ms = 10, stash_capacity = v,
      child = function(_, message)
        if message == "fail" then error("a failure") end
        handled = handled + 1
      end,
    })
    ref:tell("fail")
    new():settle()
    for _ = 1, 2000 do ref:tell("mail") end
    new():advance(20)
    assert.are.equal(math.min(is, 2000), handled)
  end,
}

add {
  id = "BOS-1", name = "max_restarts of a backoff supervisor", where = "backoff_supervisor",
  option = "max_restarts", says = "of at least -1", fine = RESTARTS, default = -1,
  give = function(v)
    troupe.backoff_supervisor {
      child = ignore, min_backoff_ms = 1, max_backoff_ms = 2, max_restarts = v,
    }
  end,
  works = function(new, v, is)
    local started = 0
    new().system:spawn(troupe.backoff_supervisor {
      min_backoff_ms = 1, max_backoff_ms = 1, random_factor = 0, max_restarts = v,
      child = {
        pre_start = function()
          started = started + 1
          error("a failure")
        end,
        receive = ignore,
      },
    })
    new():advance(20)
    assert.are.equal(is == -1 and 20 or math.min(is, 20), started - 1)
  end,
}

add {
  id = "PAT-1", name = "attempts", where = "retry", option = "attempts", says = "of at least 1",
  fine = with(COUNT, "nil"), default = 3,
  give = function(v) troupe.retry(ignore, { attempts = v }) end,
  works = function(new, v, is)
    local calls = 0
    new():async(troupe.retry, function()
      calls = calls + 1
      return nil, calls < 20 and "a failure"
    end, { attempts = v, delay_ms = 0 })
    assert.are.equal(math.min(is, 20), calls)
  end,
}

add {
  id = "PAT-1", name = "delay_ms", where = "retry", option = "delay_ms", fine = with(SPAN, "nil"),
  default = 500,
  give = function(v) troupe.retry(ignore, { delay_ms = v }) end,
  works = function(new, v, is) retries_for(new(), is, { attempts = 2, delay_ms = v }) end,
}

add {
  id = "PAT-1", name = "factor", where = "retry", option = "factor", says = "of at least 1",
  fine = { "1", "3.0", "1.5", "2^31", "2^53", "maxinteger", "nil" }, default = 1,
  give = function(v) troupe.retry(ignore, { factor = v }) end,
  works = function(new, v, is)
    retries_for(new(), 0.5 + 0.5 * is, { attempts = 3, delay_ms = 0.5, factor = v })
  end,
}

add {
  id = "PAT-1", name = "max_delay_ms", where = "retry", option = "max_delay_ms",
  fine = with(DURATION, "nil"), default = math.huge,
  give = function(v) troupe.retry(ignore, { max_delay_ms = v }) end,
  works = function(new, v, is)
    retries_for(new(), is, { attempts = 2, delay_ms = math.maxinteger, max_delay_ms = v })
  end,
}

-- The specs ---------------------------------------------------------------------------------------

local function set_of(names)
  local set = {}
  for _, name in ipairs(names) do set[name] = true end
  return set
end

describe("numbers", function()
  local kit = new_kit.each(before_each, after_each)

  --- Calls `fn` in a handler, with the actor.
  local function in_handler(fn)
    local ok, why
    kit().system:spawn(function(actor) ok, why = pcall(fn, actor) end):tell("go")
    kit():settle()
    assert(ok, why)
  end

  local function contains_one(text, parts)
    for _, part in ipairs(parts) do
      if text:find(part, 1, true) then return true end
    end
    return false
  end

  local function check_refused(option, one)
    local text
    kit(option.system)
    local function try(actor)
      text = raised_here(function() option.give(one.value, kit(), actor) end, option.give)
    end
    if option.in_handler then in_handler(try) else try() end

    assert.matches("^OptionsError: ", text)
    assert.matches((": %s: %s must be "):format(option.where, option.option), text, 1, true)
    if option.says then
      local says = type(option.says) == "table" and option.says or { option.says }
      assert(contains_one(text, says), text)
    end
    local shown = {}
    for i, got in ipairs(one.got) do shown[i] = ("(got %s)"):format(got) end
    assert(contains_one(text, shown), text)
  end

  for _, option in ipairs(options) do
    local fine = set_of(option.fine)
    for _, one in ipairs(given) do
      if fine[one.name] then
        it(("%s %s works with %s"):format(option.id, option.name, one.name), function()
          local is = one.value
          if is == nil then is = option.default end
          if option.system then kit(option.system) end
          option.works(kit, one.value, is)
        end)
      else
        it(("%s %s is never %s"):format(option.id, option.name, one.name), function()
          check_refused(option, one)
        end)
      end
    end
  end
end)
