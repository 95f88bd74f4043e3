-- What the documents that Troupe began with say, in their order, in Troupe's words.

local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function dead_letters(kit)
  local letters = {}
  kit.system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
  return letters
end

local function warnings(kit)
  local list = {}
  for _, record in ipairs(kit.logs) do
    if record.level == "warn" then list[#list + 1] = record end
  end
  return list
end

describe("the document on the router", function()
  local kit = new_kit.each(before_each, after_each)

  it("RTR-5 minimal example: a pool of four, and a message for all of them", function()
    local system = kit().system
    local function worker(actor, message) actor.log:info("processed %s", message.payload) end

    local pool = system:spawn(Router.round_robin(4, worker), "workers")

    -- One message for each routee, in a cycle:
    pool:tell { payload = "a" } -- to routee-1
    pool:tell { payload = "b" } -- to routee-2
    pool:tell { payload = "c" } -- to routee-3
    pool:tell { payload = "d" } -- to routee-4

    -- The strategy overridden for a single message: to all routees
    pool:tell(Broadcast { payload = "announce" })
    kit():settle()

    local processed = {}
    for _, record in ipairs(kit().logs) do
      processed[#processed + 1] = tostring(record.path) .. ": " .. record.message
    end
    table.sort(processed)
    assert.are.same({
      "troupe://demo/user/workers/routee-1: processed a",
      "troupe://demo/user/workers/routee-1: processed announce",
      "troupe://demo/user/workers/routee-2: processed announce",
      "troupe://demo/user/workers/routee-2: processed b",
      "troupe://demo/user/workers/routee-3: processed announce",
      "troupe://demo/user/workers/routee-3: processed c",
      "troupe://demo/user/workers/routee-4: processed announce",
      "troupe://demo/user/workers/routee-4: processed d",
    }, processed)
  end)

  it("RTR-3 the pool and its routees have these paths", function()
    local paths = {}
    local pool = kit().system:spawn(Router.round_robin(4, function(actor)
      paths[#paths + 1] = tostring(actor.path)
    end), "workers")

    pool:tell(Broadcast("where?"))
    kit():settle()

    assert.are.equal("troupe://demo/user/workers", tostring(pool.path))
    assert.are.same({
      "troupe://demo/user/workers/routee-1", "troupe://demo/user/workers/routee-2",
      "troupe://demo/user/workers/routee-3", "troupe://demo/user/workers/routee-4",
    }, paths)
  end)

  it("RTR-9 smallest_mailbox skips a routee with a hard job until it has caught up", function()
    local done = {}
    local pool = kit().system:spawn(Router.smallest_mailbox(2, function(actor, message)
      if message == "hard" then troupe.sleep(100) end
      done[#done + 1] = actor.name .. ":" .. message
    end), "workers")

    pool:tell("hard")
    for _, message in ipairs { "a", "b", "c" } do
      kit():settle()
      pool:tell(message)
    end
    kit():advance(100)
    pool:tell("d")
    pool:tell("e")
    kit():settle()

    assert.are.same({ "routee-2:a", "routee-2:b", "routee-2:c", "routee-1:hard" },
      table.move(done, 1, 4, 1, {}))
    table.sort(done)
    assert.are.equal("routee-1", done[1]:match("^[^:]+"))
    assert.are.equal("routee-1", done[2]:match("^[^:]+"))
    assert.are.equal("routee-2", done[3]:match("^[^:]+"))
  end)

  it("RTR-10 a strategy of one's own warms one routee up, then goes round", function()
    local received = { 0, 0, 0, 0 }
    -- The first 100 messages to the first routee, then round robin.
    local function warm_up(routees, state)
      if state.message_index < 100 then return { routees[1] } end
      return { routees[state.message_index % #routees + 1] }
    end
    local pool = kit().system:spawn(Router.custom(4, function(actor)
      local i = math.tointeger(actor.name:match("%d+$"))
      received[i] = received[i] + 1
    end, warm_up), "workers")

    for n = 1, 100 do pool:tell(n) end
    kit():settle()
    assert.are.same({ 100, 0, 0, 0 }, received)

    for n = 101, 140 do pool:tell(n) end
    kit():settle()
    assert.are.same({ 110, 10, 10, 10 }, received)
  end)

  it("RTR-10 an empty result drops the message: no dead letter, no routee", function()
    local received = 0
    local pool = kit().system:spawn(Router.custom(4, function() received = received + 1 end,
      function() return {} end), "workers")
    local letters = dead_letters(kit())

    pool:tell("a")
    kit():settle()

    assert.are.equal(0, received)
    assert.are.same({}, letters)
  end)

  it("RTR-13 stopping the pool stops each routee", function()
    local stopped = {}
    local pool = kit().system:spawn(Router.round_robin(4, {
      receive = function() end,
      post_stop = function(actor) stopped[#stopped + 1] = actor.name end,
    }), "workers")
    kit():settle()

    pool:stop()
    kit():settle()

    table.sort(stopped)
    assert.are.same({ "routee-1", "routee-2", "routee-3", "routee-4" }, stopped)
  end)

  it("SEL-2 one routee is stopped by its path", function()
    local system = kit().system
    local answers = {}
    local pool = system:spawn(Router.broadcast(4, function(actor)
      answers[#answers + 1] = actor.name
    end), "workers")

    local one_routee = system:actor_selection("/user/workers/routee-2"):resolve_one()
    one_routee:stop()
    kit():settle()
    pool:tell("who is there?")
    kit():settle()

    assert.are.same({ "routee-1", "routee-3", "routee-4" }, answers)
  end)

  it("RTR-12 a stopped routee that is kept takes every fourth message with it", function()
    local system = kit().system
    local letters = dead_letters(kit())
    local pool = system:spawn(Router.round_robin(4, function() end, nil,
      { on_routee_stop = "keep" }), "workers")
    system:actor_selection("/user/workers/routee-2"):resolve_one():stop()
    kit():settle()

    for n = 1, 12 do pool:tell(n) end
    kit():settle()

    local lost = {}
    for i, letter in ipairs(letters) do lost[i] = letter.message end
    assert.are.same({ 2, 6, 10 }, lost)
  end)

  it("RTR-2 a pool of nobody is refused", function()
    local text = raised_here(function() Router.round_robin(0, function() end) end)

    assert.matches("size must be an integer from 1 to 1000000", text, 1, true)
  end)

  it("RTR-4 a routee sees the original sender, not the router", function()
    local sender
    local pool = kit().system:spawn(Router.round_robin(4, function(actor)
      sender = actor.sender
    end), "workers")
    local caller = kit().system:spawn(function(actor) pool:tell("a", actor.ref) end, "caller")

    caller:tell("go")
    kit():settle()

    assert.are.equal(caller, sender)
  end)

  it("RTR-8 a broadcast router and a ref in the message bring four answers", function()
    local answers = 0
    local pool = kit().system:spawn(Router.broadcast(4, function(actor, message)
      message.reply_to:tell(actor.name)
    end), "workers")
    local client = kit().system:spawn(function() answers = answers + 1 end, "client")

    pool:tell { kind = "get", reply_to = client }
    kit():settle()

    assert.are.equal(4, answers)
  end)
end)

describe("the document on scatter/gather", function()
  local kit = new_kit.each(before_each, after_each)

  local function pool_of(routee)
    return kit().system:spawn(
      Router.scatter_gather_first_completed(3, routee, { timeout_ms = 250 }), "replicas")
  end

  it("SG-1 example: three replicas are asked, and whoever answers first decides", function()
    local system = kit().system
    local delays = { ["routee-1"] = 30, ["routee-2"] = 10, ["routee-3"] = 20 }
    local function replica(actor, key)
      troupe.sleep(delays[actor.name])
      if actor.sender then actor.sender:tell(actor.path.name .. ":" .. key) end
    end

    local replicas = system:spawn(
      Router.scatter_gather_first_completed(3, replica, { timeout_ms = 250 }), "replicas")

    local value = replicas:ask "user-42"

    assert.are.equal("routee-2:user-42", value)
  end)

  it("SG-3 losers run to completion: threefold work, threefold side effects", function()
    local written = 0
    local pool = pool_of(function(actor, key)
      troupe.sleep(actor.name == "routee-1" and 10 or 100)
      written = written + 1
      actor:reply(key)
    end)

    pool:ask("user-42")
    kit():advance(90)

    assert.are.equal(3, written)
  end)

  it("SG-4 answers a tell with an explicit sender, inside an actor", function()
    local answer
    local pool = pool_of(function(actor, key) actor:reply("found " .. key) end)
    local caller = kit().system:spawn(function(actor, message)
      if message ~= "go" then
        answer = message
        return
      end
      pool:tell("user-42", actor.ref)
    end)

    caller:tell("go")
    kit():settle()

    assert.are.equal("found user-42", answer)
  end)

  it("SG-4 drops a bare tell with a warning, and nothing else comes of it", function()
    local starts, asked = 0, 0
    local pool = pool_of {
      pre_start = function() starts = starts + 1 end,
      receive = function() asked = asked + 1 end,
    }

    pool:tell("user-42")
    kit():settle()

    assert.are.equal(0, asked)
    assert.are.equal(3, starts)
    assert.are.equal(1, #warnings(kit()))
    assert.are.equal("troupe://demo/user/replicas", tostring(warnings(kit())[1].path))
  end)

  it("SG-1 tells the caller which replica won", function()
    local pool = pool_of(function(actor, key)
      if actor.name == "routee-3" then actor:reply("found " .. key) end
    end)
    local winner
    local caller = kit().system:spawn(function(actor) winner = tostring(actor.sender.path) end)

    pool:tell("user-42", caller)
    kit():settle()

    assert.are.equal("troupe://demo/user/replicas/routee-3", winner)
  end)

  it("SG-5 all failures are of one type, and its members tell whether all were late", function()
    local pool = pool_of(function() end)

    local _, aggregate = pool:ask("user-42")

    assert.is_true(troupe.is_error(aggregate, "AggregateError"))
    assert.is_truthy(aggregate.message:find("none of 3 routees replied within 250ms", 1, true))
    assert.are.equal(3, #aggregate.errors)
    for _, err in ipairs(aggregate.errors) do
      assert.is_true(troupe.is_error(err, "AskTimeoutError"))
    end
  end)

  it("SG-5 holds what each routee returned when all failed, in scatter order", function()
    local failures = {
      ["routee-1"] = troupe.error("DiskError", "no disk"),
      ["routee-2"] = troupe.error("NetworkError", "no network"),
      ["routee-3"] = troupe.error("PowerError", "no power"),
    }
    local pool = pool_of(function(actor) actor:reply(failures[actor.name]) end)

    local _, aggregate = pool:ask("user-42")

    assert.is_truthy(aggregate.message:find("all 3 routees failed", 1, true))
    for i = 1, 3 do assert.are.equal(failures["routee-" .. i], aggregate.errors[i]) end
  end)

  it("SG-2 an error as a reply lets the scatter move on, a raise costs the deadline", function()
    local pool = pool_of(function(actor, key)
      if key == "reply" then return actor:reply(troupe.error("DiskError", "no disk")) end
      error("no disk")
    end)

    local _, replied = pool:ask("reply")
    assert.are.equal(0, kit():now())
    local _, raised = pool:ask("raise")
    assert.are.equal(250, kit():now())

    assert.are.equal("DiskError", replied.errors[1].name)
    assert.are.equal("AskTimeoutError", raised.errors[1].name)
  end)

  it("SG-3 losing replies do not reach the dead letters", function()
    local letters = dead_letters(kit())
    local pool = pool_of(function(actor, key)
      troupe.sleep(actor.name == "routee-1" and 10 or 100)
      actor:reply(key)
    end)

    pool:ask("user-42")
    kit():advance(1000)

    assert.are.same({}, letters)
  end)

  it("SG-6 the default deadline is just below that of an ask", function()
    local pool = kit().system:spawn(
      Router.scatter_gather_first_completed(3, function() end), "replicas")

    local _, err = pool:ask("user-42")

    assert.are.equal("AggregateError", err.name)
    assert.are.equal(4500, kit():now())
  end)

  it("SG-6 a bad deadline is refused while the stack still points at the caller", function()
    local scatter, replica = Router.scatter_gather_first_completed, function() end

    local text = raised_here(function() scatter(3, replica, { timeout_ms = 0 }) end)

    assert.matches("timeout_ms", text)
  end)

  it("SG-8 stopping the pool fails the open scatters, long before their deadline", function()
    local pool = pool_of(function() troupe.sleep(1000) end)
    local answer = kit():async(function() return pool:ask("user-42") end)
    kit():advance(10)

    pool:stop()
    local _, aggregate = answer:await()

    assert.is_truthy(aggregate.message:find("stopped while the scatter was still open", 1, true))
    assert.are.same({}, aggregate.errors)
    assert.are.equal(10, kit():now())
  end)

  it("SG-9 a stalled replica does not hold up other callers", function()
    local pool = pool_of(function(actor, key)
      if actor.name == "routee-1" then troupe.sleep(100000) end
      actor:reply(key)
    end)

    local answers = {}
    for n = 1, 300 do
      kit():async(function() answers[n] = pool:ask(n) end)
    end
    kit():settle()

    assert.are.equal(300, #answers)
    assert.are.equal(0, kit():now())
  end)
end)
