-- Two things that may each settle a scatter, at one and the same moment, in both orders, each
-- brought about in every way there is. What is to come of it says spec/model/gather.lua.

local troupe = require "troupe"
local core = require "troupe.core"
local testkit = require "troupe.testkit"
local gather = require "spec.model.gather"
local support = require "spec.support.kit"

local AT, DEADLINE = 100, 1000 -- ms: when the two things happen; the deadline, if it is neither
local NEVER = 1e15             -- ms: too far away for a timer

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
-- comes first: a kill does not wait for a handler (SUP-11), and a stop wins (LIFE-6); `caller`, the
-- only one for whom there is this cause.
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
    { name = "a kill", when = IN_TURN, rank = 1, act = is_killed("stop") },
    { name = "a hard stop", when = IN_TURN, rank = 2,
      act = function(scene, leg) core.stop_now(scene.routees[leg]) end },
  } },
  { name = "a routee's restart", effect = "restart", is_of_routee = true, ends_handler = true,
    causes = {
      { name = "an error", when = IN_TURN, rank = 0, act = deed("raise to restart") },
      { name = "an error, resumed", when = IN_TURN, rank = 0, act = deed("raise to resume") },
      { name = "a kill", when = IN_TURN, rank = 1, act = is_killed("restart") },
    } },
  { name = "the deadline", effect = "deadline", causes = {
    { name = "time", when = DEADLINES, act = time_passes },
  } },
  { name = "the router's stop", effect = "router_end", causes = {
    { name = "ref:stop", when = IN_TURN, act = function(scene) scene.pool:stop() end },
    { name = "PoisonPill", when = IN_TURN,
      act = function(scene) scene.pool:tell(troupe.PoisonPill) end },
    { name = "its parent", when = IN_TURN, act = function(scene) scene.parent:tell(STOP_IT) end },
    { name = "its parent's stop", when = IN_TURN, act = function(scene) scene.parent:stop() end },
    { name = "a hard stop", when = AT_ONCE, act = function(scene) core.stop_now(scene.pool) end },
  } },
  { name = "the router's restart", effect = "router_end", causes = {
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

-- Cases -------------------------------------------------------------------------------------------

-- A case: `caller`; `third_fails`, whether routee-3 has failed before, or never answers; and two
-- steps, each with `event`, `cause` and `leg`.

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
  local words = { case.caller, case.third_fails and "third fails" or "third is mute" }
  for _, step in ipairs(case) do
    words[#words + 1] = ("%s by %s%s"):format(step.event.name, step.cause.name,
      step.leg and " of routee-" .. step.leg or "")
  end
  return table.concat(words, ", ")
end

-- The callers of a case with these causes.
local function callers_of(first, second)
  local one, other = first.caller, second.caller
  if one and other and one ~= other then return {} end
  return one and { one } or other and { other } or { "actor", "task", "sender" }
end

local function legs_of(first, second)
  if first.is_of_routee and second.is_of_routee then return { { 1, 1 }, { 1, 2 } } end
  return { { first.is_of_routee and 1, second.is_of_routee and 1 } }
end

local function each_case(first, second, visit)
  for _, one in ipairs(first.causes) do
    for _, other in ipairs(second.causes) do
      for _, caller in ipairs(callers_of(one, other)) do
        for _, legs in ipairs(legs_of(first, second)) do
          for _, third_fails in ipairs { false, true } do
            visit {
              { event = first, cause = one, leg = legs[1] or nil },
              { event = second, cause = other, leg = legs[2] or nil },
              caller = caller,
              third_fails = third_fails,
            }
          end
        end
      end
    end
  end
end

-- What is to be seen ------------------------------------------------------------------------------

local function comes_later(step, other)
  if step.cause.when ~= other.cause.when then return step.cause.when > other.cause.when end
  return step.leg ~= nil and step.leg == other.leg and step.cause.when == IN_TURN
    and step.cause.rank < other.cause.rank
end

local function expect(case, first, second)
  local model = gather.new(case.caller)
  model.looked = { looks(case, 1), looks(case, 2), false }
  if case.third_fails then model:failure(3) end
  if comes_later(first, second) then first, second = second, first end
  model[first.event.effect](model, first.leg)
  local is_void = first.event.ends_handler and second.leg == first.leg
    and second.cause.when == IN_TURN
  if not is_void then model[second.event.effect](model, second.leg) end
  local heard_at = model.heard and AT or DEADLINE
  local is_open = not model.outcome
  if is_open then model:deadline() end
  return {
    is_open = is_open,
    heard = { model.heard and ("%g: %s"):format(heard_at, model.heard) },
    letters = { case.caller == "sender" and model.lost or nil },
  }
end

-- In an order that is drawn, turns may come in either.
local function may_swap(case)
  local one, other = case[1], case[2]
  return one.cause.when == IN_TURN and other.cause.when == IN_TURN
    and not (one.leg and one.leg == other.leg)
end

-- What is seen ------------------------------------------------------------------------------------

local function name_of(err)
  return troupe.is_error(err, "Broken") and tostring(err) or err.name
end

local function describe_answer(answer, from)
  local text = answer
  if troupe.is_error(answer, "AggregateError") then
    local members = {}
    for i, member in ipairs(answer.errors) do members[i] = name_of(member) end
    local message = answer.message:match("^%S+: (.-)%s?%d*m?s?$")
    text = ("AggregateError: %s {%s}"):format(message, table.concat(members, "; "))
  elseif troupe.is_error(answer) then
    text = answer.name
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
    if leg == 3 and scene.case.third_fails then return actor:fail(broken[3]) end
    if looks(scene.case, leg) then scene.reply_refs[leg] = actor.sender end
    scene.gate:ask(leg, NEVER)
    for _, name in ipairs(scene.deeds[leg]) do
      if deeds[name](actor, leg) == "handler ends" then return end
    end
  end
end

local function spawn_pool(scene, system)
  local pool = troupe.Router.scatter_gather_first_completed(3, routee_of(scene),
    { timeout_ms = has(scene.case, "deadline") and AT or DEADLINE },
    { supervisor_strategy = troupe.one_for_one {
      decider = function(reason)
        if reason.name ~= "ActorKilledError" then return reason.name end
        return scene.on_kill[math.tointeger(reason.path:match("%d+$"))]
      end,
    } })
  scene.parent = system:spawn({
    pre_start = function(actor) scene.pool = actor:spawn(pool, "replicas") end,
    receive = function(actor) actor:stop(scene.pool) end,
  })
end

local function start_caller(scene, kit, heard)
  local timeout_ms = has(scene.case, "callers_deadline") and AT or NEVER
  local function hear(answer, from)
    heard[#heard + 1] = ("%g: %s"):format(kit:now(), describe_answer(answer, from))
  end
  local function ask()
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

-- Nothing is left of a scatter that has settled.  (SG-13)
local function check_open(kit, open)
  local stats = kit.system:stats()
  assert.are.same({ scatters = open, timers = open },
    { scatters = stats.scatters, timers = stats.timers })
end

local function run(kit, case)
  local scene = {
    case = case, deeds = { {}, {}, {} }, gates = {}, reply_refs = {}, routees = {}, on_kill = {},
  }
  local heard, letters = {}, {}
  kit.system.events:subscribe(function(event)
    if event.message == STOP_IT then return end -- its parent may have stopped itself
    letters[#letters + 1] = describe_answer(event.message, event.sender)
  end, "dead_letter")
  scene.gate = kit.system:spawn(function(actor, leg) scene.gates[leg] = actor.sender end)
  spawn_pool(scene, kit.system)
  kit:settle()
  start_caller(scene, kit, heard)

  for _, step in ipairs(case) do
    kit.system:schedule_once(AT, function() step.cause.act(scene, step.leg) end)
  end
  kit:advance(AT)
  local stats = kit.system:stats()
  local is_open = stats.scatters > 0
  check_open(kit, is_open and 1 or 0)
  kit:advance(DEADLINE)
  check_open(kit, 0)
  return { is_open = is_open, heard = heard, letters = letters }
end

describe("what happens to a scatter at one moment", function()
  for _, first in ipairs(events) do
    for _, second in ipairs(events) do
      it(("SG-12 is %s, then %s"):format(first.name, second.name), function()
        each_case(first, second, function(case)
          local kit = testkit.system("demo", { log_level = "off" })
          assert.are.same(expect(case, case[1], case[2]), run(kit, case), describe_case(case))
          support.check_ledger(kit)
        end)
      end)
    end
  end
end)

describe("what happens to a scatter at one moment, in orders that are drawn", function()
  local kit = support.each(before_each, after_each)

  -- As text, to be compared with one of several.
  local function text_of(seen)
    return ("%s | %s | %s"):format(seen.is_open, seen.heard[1], seen.letters[1])
  end

  for _, first in ipairs(events) do
    for _, second in ipairs(events) do
      it(("SG-12 is %s and %s"):format(first.name, second.name), function()
        local seed = 0
        each_case(first, second, function(case)
          local allowed = { text_of(expect(case, case[1], case[2])) }
          if may_swap(case) then allowed[2] = text_of(expect(case, case[2], case[1])) end
          seed = seed + 1
          kit({ log_level = "off" }):explore(function(fresh)
            local seen = text_of(run(fresh, case))
            if seen == allowed[1] or seen == allowed[2] then return support.check_ledger(fresh) end
            error(("%s: expected %s, got %s"):format(describe_case(case),
              table.concat(allowed, ", or "), seen))
          end, { first = seed, seeds = 1 })
        end)
      end)
    end
  end
end)
