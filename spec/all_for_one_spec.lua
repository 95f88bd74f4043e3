local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("all_for_one", function()
  local kit = new_kit.each(before_each, after_each)

  -- A parent with the children "a", "b", "c", spawned in this order; each notes what happens to it,
  -- raises on "boom" and sleeps for 10 ms on "sleep".
  local function family(options, seen)
    local function note(actor, what) seen[#seen + 1] = actor.name .. " " .. what end
    local child = {
      pre_start = function(actor) note(actor, "starts") end,
      receive = function(actor, message)
        if message == "boom" then error("boom", 0) end
        if message == "sleep" then troupe.sleep(10) end
        note(actor, message)
      end,
      pre_restart = function(actor, reason, message)
        note(actor, ("goes: %s, %s"):format(reason, message))
      end,
      post_restart = function(actor, reason) note(actor, "is new: " .. reason) end,
      post_stop = function(actor) note(actor, "stops") end,
    }
    local children = {}
    kit().system:spawn({
      pre_start = function(actor)
        for _, name in ipairs { "a", "b", "c" } do children[name] = actor:spawn(child, name) end
      end,
      receive = function() end,
      supervisor_strategy = troupe.all_for_one(options),
    }, "parent")
    kit():settle()
    for i = #seen, 1, -1 do seen[i] = nil end
    return children
  end

  local function warnings()
    local found = {}
    for _, record in ipairs(kit().logs) do
      if record.level == "warn" or record.level == "error" then found[#found + 1] = record.path end
    end
    return found
  end

  it("SUP-6 restarts every child, in the order they were spawned, with the cause", function()
    local seen = {}
    local children = family({}, seen)

    children.c:tell("mail")
    children.b:tell("boom")
    children.a:tell("mail")
    kit():settle()

    assert.are.same({
      "c mail",
      "a goes: boom, nil", "a is new: boom", "a mail",
      "b goes: boom, boom", "b is new: boom",
      "c goes: boom, nil", "c is new: boom",
    }, seen)
    assert.are.same({ "troupe://demo/user/parent/b" }, warnings())
  end)

  it("SUP-5 restarts in order, whoever is ready first", function()
    local seen = {}
    local children = family({}, seen)

    children.b:tell("boom")
    children.c:tell("mail")
    children.a:tell("mail")
    kit():settle()

    assert.are.same({
      "a goes: boom, nil", "a is new: boom", "a mail",
      "b goes: boom, boom", "b is new: boom",
      "c goes: boom, nil", "c is new: boom", "c mail",
    }, seen)
  end)

  it("SUP-6 lets a healthy sibling handle nothing until it is new", function()
    local seen = {}
    local restarts = {
      receive = function(_, message)
        if message == "boom" then error("boom", 0) end
        seen[#seen + 1] = message
      end,
      pre_restart = function(actor)
        troupe.sleep(10)
        seen[#seen + 1] = actor.name .. " goes"
      end,
      post_restart = function(actor)
        troupe.sleep(10)
        seen[#seen + 1] = actor.name .. " is new"
      end,
    }
    local options = { supervisor_strategy = troupe.all_for_one() }
    local failing = kit().system:spawn(restarts, "failing", options)
    local healthy = kit().system:spawn(restarts, "healthy", options)
    kit():settle()

    failing:tell("boom")
    healthy:tell("mail")
    kit():advance(100)

    assert.are.same({ "failing goes", "healthy goes", "failing is new", "healthy is new", "mail" },
      seen)
  end)

  it("SUP-6 gives up the wait that a healthy sibling is in", function()
    local seen = {}
    local children = family({}, seen)
    children.a:tell("sleep")
    children.a:tell("mail")
    kit():settle()

    children.c:tell("boom")
    kit():advance(100)

    assert.are.same({
      "a goes: boom, nil", "a is new: boom", "a mail",
      "b goes: boom, nil", "b is new: boom",
      "c goes: boom, boom", "c is new: boom",
    }, seen)
  end)

  it("SUP-6 stops every child", function()
    local seen = {}
    local children = family({ decider = "stop" }, seen)
    children.a:tell("sleep")
    kit():settle()

    children.b:tell("boom")
    children.c:tell("mail")
    kit():advance(100)

    table.sort(seen)
    assert.are.same({ "a stops", "b stops", "c stops" }, seen)
  end)

  it("SUP-6 leaves alone who is stopping already", function()
    local seen = {}
    local children = family({}, seen)
    children.a:tell("sleep")
    children.a:tell("mail")
    kit():settle()
    children.a:stop()

    children.b:tell("boom")
    kit():advance(100)

    assert.are.same({
      "b goes: boom, boom", "b is new: boom", "c goes: boom, nil", "c is new: boom",
      "a sleep", "a mail", "a stops",
    }, seen)
  end)

  it("SUP-6 leaves alone who has just been spawned", function()
    local seen = {}
    local options = { supervisor_strategy = troupe.all_for_one() }
    local failing = kit().system:spawn(function() error("boom", 0) end, nil, options)
    kit():settle()

    failing:tell("boom")
    kit().system:spawn({
      pre_start = function() seen[#seen + 1] = "starts" end,
      pre_restart = function() seen[#seen + 1] = "goes" end,
      receive = function() end,
    }, nil, options)
    kit():settle()

    assert.are.same({ "starts" }, seen)
  end)

  it("SUP-6 begins the start of a sibling that is starting anew", function()
    local seen = {}
    local options = { supervisor_strategy = troupe.all_for_one() }
    local failing = kit().system:spawn(function() error("boom", 0) end, nil, options)
    kit().system:spawn({
      pre_start = function(actor)
        seen[#seen + 1] = "starts"
        troupe.sleep(10)
        seen[#seen + 1] = "has started"
        actor.ready = true
      end,
      receive = function(actor) seen[#seen + 1] = actor.ready end,
    }, nil, options):tell("mail")
    kit():settle()

    failing:tell("boom")
    kit():advance(100)

    assert.are.same({ "starts", "starts", "has started", true }, seen)
  end)

  it("SUP-6 resumes the child that failed, and touches no other", function()
    local seen = {}
    local children = family({ decider = "resume" }, seen)

    children.b:tell("boom")
    for _, name in ipairs { "a", "b", "c" } do children[name]:tell("mail") end
    kit():settle()

    table.sort(seen)
    assert.are.same({ "a mail", "b mail", "c mail" }, seen)
  end)

  it("SUP-6 restarts what is below the siblings too", function()
    local seen = {}
    local options = { supervisor_strategy = troupe.all_for_one() }
    local failing = kit().system:spawn(function() error("boom", 0) end, nil, options)
    kit().system:spawn({
      pre_start = function(actor)
        actor:spawn({
          pre_start = function() seen[#seen + 1] = "grandchild starts" end,
          receive = function() end,
          post_stop = function() seen[#seen + 1] = "grandchild stops" end,
        }, "grandchild")
      end,
      receive = function() end,
      post_stop = function() seen[#seen + 1] = "child goes" end,
    }, "child", options)
    kit():settle()

    failing:tell("boom")
    kit():settle()

    assert.are.same(
      { "grandchild starts", "child goes", "grandchild stops", "grandchild starts" }, seen)
  end)

  it("SUP-5 charges the child that failed alone", function()
    local seen = {}
    local children = family({ max_restarts = 1 }, seen)

    children.a:tell("boom")
    children.b:tell("boom")
    children.c:tell("boom")
    kit():settle()
    for _, name in ipairs { "a", "b", "c" } do children[name]:tell("mail") end
    kit():settle()

    table.move(seen, #seen - 2, #seen, 1, seen)
    assert.are.same({ "a mail", "b mail", "c mail" }, { seen[1], seen[2], seen[3] })
  end)

  it("SUP-5 stops them all with the failure after the last restart that is granted", function()
    local seen = {}
    local children = family({ max_restarts = 1 }, seen)
    children.a:tell("boom")
    kit():settle()
    for i = #seen, 1, -1 do seen[i] = nil end

    children.a:tell("boom")
    kit():settle()

    table.sort(seen)
    assert.are.same({ "a stops", "b stops", "c stops" }, seen)
  end)

  it("SUP-7 stops them all when the decider gives no directive", function()
    local seen = {}
    local children = family({ decider = function() return "retry" end }, seen)

    children.b:tell("boom")
    kit():settle()

    table.sort(seen)
    assert.are.same({ "a stops", "b stops", "c stops" }, seen)
  end)

  it("SUP-6 restarts a whole pool when a routee fails, and every routee has its mail", function()
    local seen = {}
    local pool = kit().system:spawn(troupe.Router.broadcast(3, {
      receive = function(actor, message)
        if message == "boom" and actor.name == "routee-2" then error("boom", 0) end
        seen[#seen + 1] = actor.name .. " " .. message
      end,
      post_restart = function(actor) seen[#seen + 1] = actor.name .. " is new" end,
    }, { supervisor_strategy = troupe.all_for_one() }))
    kit():settle()

    pool:tell("boom")
    pool:tell("mail")
    kit():settle()

    table.sort(seen)
    assert.are.same({
      "routee-1 boom", "routee-1 is new", "routee-1 mail",
      "routee-2 is new", "routee-2 mail",
      "routee-3 boom", "routee-3 is new", "routee-3 mail",
    }, seen)
  end)

  it("SUP-1 takes the options of one_for_one", function()
    for _, name in ipairs { "one_for_one", "all_for_one" } do
      assert.has_error(function() troupe[name] { max_restarts = -2 } end)
      assert.has_error(function() troupe[name] { within = 1 } end)
      assert.has_error(function() troupe[name] { decider = "retry" } end)
    end
  end)
end)
