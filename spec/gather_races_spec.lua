-- Two things that may each settle a scatter, at one and the same moment, in both orders, each
-- brought about in every way there is. What is to come of it says spec/model/gather.lua.

local troupe = require "troupe"
local core = require "troupe.core"
local testkit = require "troupe.testkit"
local gather = require "spec.model.gather"
local support = require "spec.support.kit"

local AT, DEADLINE = 100, 1000 -- ms: when the two things happen; the deadline, if it is neither
local NEVER = 1e15             -- ms: too far away for a timer

-- One case in so many is run: there are some 12,000. TROUPE_HISTORIES=6000 runs them all.
local EVERY = math.max(1, 6000 // (tonumber(os.getenv("TROUPE_HISTORIES")) or 1200))

local STOP_IT = "stop it"

local broken = {}
for leg, text in ipairs(gather.failures) do
  broken[leg] = troupe.error(text:match("^(%w+): (.*)$"))
end

-- What happens ------------------------------------------------------------------------------------

-- When a cause takes effect, in this order. Deadlines come before all else of their instant
-- (ASK-6): the caller's was armed before that of the scatter. A cause may work where it is called,
-- or have to wait for the turn of an actor; turns come in the order in which they were called for.
local CALLERS_DEADLINE, DEADLINES, AT_ONCE, IN_TURN = 1, 2, 3, 4

-- The handler of the routee, which waits, goes on and does this.
local function deed(name)
  return function(scene, leg)
    table.insert(scene.deeds[leg], name)
    scene.gates[leg]:tell("open")
  end
end

local function is_told(answers)
  return function(scene, leg) scene.reply_refs[leg]:tell(answers[leg], scene.routees[leg]) end
end

local function is_killed(directive)
  return function(scene, leg)
    scene.on_kill[leg] = scene.on_kill[leg] or directive
    scene.routees[leg]:kill()
  end
end

local function time_passes() end

-- What may happen, with its causes. `effect` is what it is to the model. Of a cause: `looks`, the
-- routee has given its sender away; `rank`, of what happens to one routee in its turn, the highest
-- comes first: a kill does not wait for a handler (SUP-11), and a stop wins (LIFE-6); `takes_two`
-- turns, since a decider is asked first; `caller`, the only one for whom there is this cause.
-- A stream does not hear of the router's end but of what that does to the routees, whose turns come
-- after that of the router (`stops_in_turn`), or after that of its parent too (`passes_down`).
local events = {
  { name = "a reply", effect = "reply", is_of_routee = true, causes = {
    { name = "actor:reply", when = IN_TURN, rank = 0, act = deed("reply") },
    { name = "the reply ref", when = AT_ONCE, looks = true, act = is_told(gather.replies) },
  } },
  { name = "a failure", effect = "failure", is_of_routee = true, causes = {
    { name = "actor:fail", when = IN_TURN, rank = 0, act = deed("fail") },
    { name = "an error as reply", when = IN_TURN, rank = 0, act = deed("reply an error") },
    { name = "the reply ref", when = AT_ONCE, looks = true, act = is_told(broken) },
  } },
  { name = "a routee's stop", effect = "stop", is_of_routee = true, ends_handler = true, causes = {
    { name = "actor:stop", when = IN_TURN, rank = 0, act = deed("stop") },
    { name = "an error", when = IN_TURN, rank = 0, act = deed("raise to stop") },
    { name = "a kill", when = IN_TURN, rank = 1, takes_two = true,
      act = is_killed("stop") },
    { name = "a hard stop", when = IN_TURN, rank = 2,
      act = function(scene, leg) core.stop_now(scene.routees[leg]) end },
  } },
  { name = "a routee's restart", effect = "restart", is_of_routee = true, ends_handler = true,
    causes = {
      { name = "an error", when = IN_TURN, rank = 0, act = deed("raise to restart") },
      { name = "an error, resumed", when = IN_TURN, rank = 0, act = deed("raise to resume") },
      { name = "a kill", when = IN_TURN, rank = 1, takes_two = true, act = is_killed("restart") },
    } },
  { name = "the deadline", effect = "deadline", causes = {
    { name = "time", when = DEADLINES, act = time_passes },
  } },
  { name = "the router's stop", effect = "router_end", ends_handler = true, causes = {
    { name = "ref:stop", when = IN_TURN, act = function(scene) scene.pool:stop() end },
    { name = "PoisonPill", when = IN_TURN,
      act = function(scene) scene.pool:tell(troupe.PoisonPill) end },
    { name = "its parent", when = IN_TURN, passes_down = true,
      act = function(scene) scene.parent:tell(STOP_IT) end },
    { name = "its parent's stop", when = IN_TURN, passes_down = true,
      act = function(scene) scene.parent:stop() end },
    { name = "a hard stop", when = AT_ONCE, stops_in_turn = true,
      act = function(scene) core.stop_now(scene.pool) end },
  } },
  { name = "the router's restart", effect = "router_end", ends_handler = true, causes = {
    { name = "Kill", when = IN_TURN, act = function(scene) scene.pool:tell(troupe.Kill) end },
    { name = "a kill", when = IN_TURN, act = function(scene) scene.pool:kill() end },
  } },
  { name = "the caller's stop", effect = "caller_end", causes = {
    { name = "a hard stop", when = AT_ONCE, caller = "actor",
      act = function(scene) core.stop_now(scene.caller) end },
    { name = "a kill", when = AT_ONCE, caller = "actor",
      act = function(scene) scene.caller:kill() end },
    { name = "task:cancel", when = AT_ONCE, caller = "task",
      act = function(scene) scene.caller:cancel() end },
    { name = "ref:stop", when = AT_ONCE, caller = "sender",
      act = function(scene) scene.caller:stop() end },
  } },
  { name = "the caller's deadline", effect = "callers_deadline", causes = {
    { name = "time", when = CALLERS_DEADLINE, caller = "actor", act = time_passes },
    { name = "time", when = CALLERS_DEADLINE, caller = "task", act = time_passes },
  } },
}

-- Kinds of scatters -------------------------------------------------------------------------------

-- What may have come of routee-3 before: nothing, or it has failed, or it has replied.
local UNDECIDED, ALL = { "mute", "fails" }, { "mute", "fails", "replies" }

-- `needed` and `has_list` are for the model; `sorts`, where the order of the routees is drawn.
-- `third_asked`: when it asks routee-3, "then", at that very moment but after a deadline, or
-- "later", unless a failure makes it do so at once. `is_stream`: its caller takes every answer as
-- it comes, from ref:gather.
local kinds = {
  { name = "scatter_gather_first_completed", needed = 1, thirds = UNDECIDED, options = {} },
  { name = "hedged", needed = 1, thirds = UNDECIDED, options = { delay_ms = 10 } },
  { name = "hedged", needed = 1, thirds = { "mute" }, options = { delay_ms = AT / 2 },
    third_asked = "then" },
  { name = "hedged", needed = 1, thirds = { "mute" }, options = { delay_ms = AT - 1 },
    third_asked = "later" },
  { name = "tail_chopping", needed = 1, thirds = UNDECIDED, options = { interval_ms = 10 },
    sorts = true },
  { name = "scatter_gather", needed = 2, thirds = ALL, options = { wait_for = 2 },
    has_list = true },
  { name = "scatter_gather_first_completed", needed = 3, thirds = ALL, options = {},
    is_stream = true },
}

-- Cases -------------------------------------------------------------------------------------------

-- A case: `kind`; `caller`; `third`, what has come of routee-3; `cancels`, whether losers are
-- cancelled; and two steps, each with `event`, `cause` and `leg`.

local function has(case, effect)
  return case[1].event.effect == effect or case[2].event.effect == effect
end

local function looks(case, leg)
  for _, step in ipairs(case) do
    if step.leg == leg and step.cause.looks then return true end
  end
  return false
end

local function describe_case(case)
  local words = { case.caller, "the third " .. case.third }
  for _, step in ipairs(case) do
    words[#words + 1] = ("%s by %s%s"):format(step.event.name, step.cause.name,
      step.leg and " of routee-" .. step.leg or "")
  end
  return table.concat(words, ", ")
end

-- The callers of a case with these causes. There are all where the kind does not matter.
local function callers_of(kind, first, second)
  local one, other = first.caller, second.caller
  if one and other and one ~= other then return {} end
  if kind.is_stream and (one == "sender" or other == "sender") then return {} end
  if one or other then return { one or other } end
  return kind == kinds[1] and { "actor", "task", "sender" } or { "actor" }
end

local function legs_of(first, second)
  if first.is_of_routee and second.is_of_routee then return { { 1, 1 }, { 1, 2 } } end
  return { { first.is_of_routee and 1, second.is_of_routee and 1 } }
end

local function each_case(kind, cancels, first, second, visit)
  local none = "callers_deadline" -- a stream has one deadline, which is its caller's
  if kind.is_stream and (first.effect == none or second.effect == none) then return end
  for _, one in ipairs(first.causes) do
    for _, other in ipairs(second.causes) do
      for _, caller in ipairs(callers_of(kind, one, other)) do
        for _, legs in ipairs(legs_of(first, second)) do
          for _, third in ipairs(kind.thirds) do
            visit {
              kind = kind,
              cancels = cancels,
              { event = first, cause = one, leg = legs[1] or nil },
              { event = second, cause = other, leg = legs[2] or nil },
              caller = caller,
              third = third,
            }
          end
        end
      end
    end
  end
end

-- What is to be seen ------------------------------------------------------------------------------

local function when(case, step)
  return case.kind.is_stream and step.cause.stops_in_turn and IN_TURN or step.cause.when
end

local function takes_two(case, step)
  return step.cause.takes_two or case.kind.is_stream and step.cause.passes_down or false
end

-- Whether the first of two steps takes effect after the second.
local function comes_later(case, step, other, is_drawn)
  local one, two = when(case, step), when(case, other)
  if one ~= two then return one > two end
  if one ~= IN_TURN then return false end
  if step.leg and step.leg == other.leg then return step.cause.rank < other.cause.rank end
  return takes_two(case, step) and not takes_two(case, other) and not is_drawn
end

local function new_model(case)
  local kind = case.kind
  local model = gather.new {
    caller = case.caller,
    -- A deadline comes before the third is asked.
    size = kind.third_asked and has(case, "deadline") and 2 or 3,
    needed = kind.needed,
    has_list = kind.has_list,
    sorts = kind.sorts,
    is_stream = kind.is_stream,
  }
  model.looked = { looks(case, 1), looks(case, 2), false }
  if case.third == "fails" then model:failure(3) end
  if case.third == "replies" then model:reply(3) end
  return model
end

local function expect(case, first, second, is_drawn)
  local model = new_model(case)
  if comes_later(case, first, second, is_drawn) then first, second = second, first end
  model:time(AT)
  model[first.event.effect](model, first.leg)
  local is_void = first.event.ends_handler and (not first.leg or second.leg == first.leg)
    and second.leg and second.cause.when == IN_TURN
  if not is_void then model[second.event.effect](model, second.leg) end
  local is_open = not model.outcome
  local is_to_ask = is_open and case.kind.third_asked == "later" and model.failed == 0
  if is_to_ask and model.is_gone then model.size = 2 end -- nobody waits for it (SG-15)
  model:time(DEADLINE)
  model:deadline()
  return {
    scatters = is_open and 1 or 0,
    timers = is_to_ask and 2 or is_open and 1 or 0,
    outcome = model.outcome,
    heard = model.heard,
    letters = { case.caller == "sender" and model.lost or nil },
  }
end

-- In an order that is drawn, turns may come in either.
local function may_swap(case)
  local one, other = case[1], case[2]
  return when(case, one) == IN_TURN and when(case, other) == IN_TURN
    and not (one.leg and one.leg == other.leg)
end

-- What is seen ------------------------------------------------------------------------------------

local function name_of(err)
  return troupe.is_error(err, "Broken") and tostring(err) or err.name
end

-- In an order that is drawn, the members of an error are in none.
local function text_of_aggregate(err, sorts)
  local members = {}
  for i, member in ipairs(err.errors) do members[i] = name_of(member) end
  if sorts then table.sort(members) end
  local message = err.message:match("^%S+: (.*)$"):gsub("within %d+ms", "within")
  return ("AggregateError: %s {%s}"):format(message, table.concat(members, "; "))
end

local function text_of_list(replies)
  local list = {}
  for i, reply in ipairs(replies) do
    assert(reply.value == gather.replies[math.tointeger(reply.routee.name:match("%d+$"))])
    list[i] = reply.value
  end
  return ("{%s}"):format(table.concat(list, "; "))
end

local function describe_answer(answer, from, sorts)
  local text = answer
  if troupe.is_error(answer, "AggregateError") then
    text = text_of_aggregate(answer, sorts)
  elseif troupe.is_error(answer) then
    text = name_of(answer)
  elseif type(answer) == "table" then
    text = text_of_list(answer)
  end
  return ("%s, from %s"):format(text, from and from.name or "nobody")
end

local deeds = {
  ["reply"] = function(actor, leg) actor:reply(gather.replies[leg]) end,
  ["fail"] = function(actor, leg) actor:fail(broken[leg]) end,
  ["reply an error"] = function(actor, leg) actor:reply(broken[leg]) end,
  ["stop"] = function(actor)
    actor:stop()
    return "handler ends"
  end,
  ["raise to stop"] = function() error(troupe.error("stop", "as told")) end,
  ["raise to restart"] = function() error(troupe.error("restart", "as told")) end,
  ["raise to resume"] = function() error(troupe.error("resume", "as told")) end,
}

-- A routee that waits for what it is to do with the request.
local function routee_of(scene)
  return function(actor)
    local leg = math.tointeger(actor.name:match("%d+$"))
    scene.routees[leg] = actor.ref
    if leg == 3 and scene.case.third == "fails" then return actor:fail(broken[3]) end
    if leg == 3 and scene.case.third == "replies" then return actor:reply(gather.replies[3]) end
    if looks(scene.case, leg) then scene.reply_refs[leg] = actor.sender end
    scene.gate:ask(leg, NEVER)
    for _, name in ipairs(scene.deeds[leg]) do
      if deeds[name](actor, leg) == "handler ends" then return end
    end
  end
end

local function new_pool(scene)
  local case = scene.case
  local options = {
    timeout_ms = has(case, "deadline") and AT or DEADLINE,
    cancel_losers = case.cancels,
  }
  for name, value in pairs(case.kind.options) do options[name] = value end
  return troupe.Router[case.kind.name](3, routee_of(scene), options, {
    supervisor_strategy = troupe.one_for_one {
      decider = function(reason)
        if reason.name ~= "ActorKilledError" then return reason.name end
        return scene.on_kill[math.tointeger(reason.path:match("%d+$"))]
      end,
    },
  })
end

local function spawn_pool(scene, system)
  local pool = new_pool(scene)
  scene.parent = system:spawn({
    pre_start = function(actor) scene.pool = actor:spawn(pool, "replicas") end,
    receive = function(actor) actor:stop(scene.pool) end,
  })
end

local function start_caller(scene, kit, heard)
  local timeout_ms = has(scene.case, "callers_deadline") and AT or NEVER
  local sorts = scene.case.kind.sorts
  local function hear(answer, from)
    heard[#heard + 1] = ("%g: %s"):format(kit:now(), describe_answer(answer, from, sorts))
  end
  local function take_all()
    local timeout = has(scene.case, "deadline") and AT or DEADLINE
    for routee, value, err in scene.pool:gather("k", timeout) do hear(err or value, routee) end
    hear("the end")
  end
  local function ask()
    if scene.case.kind.is_stream then return take_all() end
    local value, err, from = scene.pool:ask("k", timeout_ms)
    hear(err or value, from)
  end
  if scene.case.caller == "task" then
    scene.caller = kit:async(ask)
  elseif scene.case.caller == "actor" then
    scene.caller = kit.system:spawn(ask, nil, { supervisor_strategy = troupe.stopping_strategy })
    scene.caller:tell("go")
  else
    scene.caller = kit.system:spawn(function(actor, answer) hear(answer, actor.sender) end)
    scene.pool:tell("k", scene.caller)
  end
  kit:settle()
end

-- What was counted, which must be one.  (SG-10)
local function outcome_of(kit)
  local outcomes = {}
  local pattern = 'router_scatter_gather_resolved_total{outcome="([%w-]+)"} (%d+)'
  for outcome, count in kit.system.metrics:render():gmatch(pattern) do
    for _ = 1, tonumber(count) do outcomes[#outcomes + 1] = outcome end
  end
  return outcomes[1] and table.concat(outcomes, ", ") or "none"
end

local function run(kit, case)
  local scene = {
    case = case, deeds = { {}, {}, {} }, gates = {}, reply_refs = {}, routees = {}, on_kill = {},
  }
  local heard, letters = {}, {}
  kit.system.events:subscribe(function(event)
    if event.message == STOP_IT then return end -- its parent may have stopped itself
    letters[#letters + 1] = describe_answer(event.message, event.sender, case.kind.sorts)
  end, "dead_letter")
  scene.gate = kit.system:spawn(function(actor, leg) scene.gates[leg] = actor.sender end)
  spawn_pool(scene, kit.system)
  kit:settle()
  start_caller(scene, kit, heard)
  kit:advance(AT - 1)

  for _, step in ipairs(case) do
    kit.system:schedule_once(1, function() step.cause.act(scene, step.leg) end)
  end
  kit:advance(1)
  local stats = kit.system:stats()
  kit:advance(DEADLINE)
  assert.are.equal(0, kit.system:stats().timers)
  if case.cancels and not looks(case, 1) and not looks(case, 2) then -- SG-14
    assert.are.equal(0, kit.system:stats().parked)
  end
  return {
    scatters = stats.scatters, -- open after that moment
    timers = stats.timers, -- SG-13
    outcome = outcome_of(kit),
    heard = heard,
    letters = letters,
  }
end

local function run_once(case)
  local kit = testkit.system("demo", { log_level = "off", metrics = true })
  assert.are.same(expect(case, case[1], case[2]), run(kit, case), describe_case(case))
  support.check_ledger(kit)
end

-- As text, to be compared with one of several. In whatever order the routees of a router stop.
local function text_of(seen)
  local heard = table.move(seen.heard, 1, #seen.heard, 1, {})
  table.sort(heard)
  return ("%d, %d | %s | %s | %s"):format(seen.scatters, seen.timers, seen.outcome,
    table.concat(heard, "; "), seen.letters[1])
end

local function explore(kit, case, seed)
  local either = text_of(expect(case, case[1], case[2], true))
  local other = text_of(expect(case, case[2], case[1], true))
  kit:explore(function(fresh)
    local seen = text_of(run(fresh, case))
    if seen == either or seen == other then return support.check_ledger(fresh) end
    error(("%s: expected %s, or %s, got %s"):format(describe_case(case), either, other, seen))
  end, { first = seed, seeds = 1 })
end

-- Each test begins to count at its own number. Cases come in regular order, so that one count for
-- all would always pass over the same causes.
local tests = 0

for _, kind in ipairs(kinds) do
  for _, cancels in ipairs { false, true } do
    describe(("what happens to %s%s%s%s at one moment"):format(
      kind.is_stream and "a stream from " or "", kind.name,
      kind.third_asked and " that asks one more " .. kind.third_asked or "",
      cancels and " and cancels losers" or ""), function()
      local kit = support.each(before_each, after_each)

      local function some(title, first, visit)
        tests = tests + 1
        local number = tests
        it(title:format(first.name), function()
          for _, second in ipairs(events) do
            each_case(kind, cancels, first, second, function(case)
              number = number + 1
              if number % EVERY == 0 then visit(case, number) end
            end)
          end
        end)
      end

      for _, first in ipairs(events) do
        some("SG-12 is %s, then anything", first, run_once)

        some("SG-12 is %s and anything, in an order that is drawn", first, function(case, seed)
          if not may_swap(case) then return end
          explore(kit { log_level = "off", metrics = true }, case, seed)
        end)
      end
    end)
  end
end
