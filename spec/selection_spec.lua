local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("selection", function()
  local kit = new_kit.each(before_each, after_each)

  it("SEL-1 resolves a path, short or in full, to the ref", function()
    local system = kit().system
    local kid
    local parent = system:spawn({
      pre_start = function(actor) kid = actor:spawn(ignore, "kid") end,
      receive = ignore,
    }, "parent")
    kit():settle()
    local function at(path) return (system:actor_selection(path):resolve_one()) end

    assert.are.equal(parent, at "/user/parent")
    assert.are.equal(parent, at "troupe://demo/user/parent")
    assert.are.equal(kid, at "/user/parent/kid")
    assert.are.equal(kid, at(tostring(kid.path)))
  end)

  it("SEL-1 resolves in a handler and in a task", function()
    local system = kit().system
    local target = system:spawn(ignore, "target")
    local ref = system:spawn(function(actor)
      actor:reply(system:actor_selection("/user/target"):resolve_one())
    end)
    local task = kit():async(function()
      return system:actor_selection("/user/target"):resolve_one()
    end)

    assert.are.equal(target, (ref:ask("resolve")))
    assert.are.equal(target, (task:await()))
  end)

  it("SEL-1 gives nil and an error after 1000 ms when nobody is there", function()
    local ref, err = kit().system:actor_selection("/user/nobody"):resolve_one()

    assert.is_nil(ref)
    assert.is_true(troupe.is_error(err, "TimeoutError"))
    assert.are.equal(1000, kit():now())
  end)

  it("SEL-1 waits as long as it is told to", function()
    local ref, err = kit().system:actor_selection("/user/nobody"):resolve_one(30)

    assert.is_nil(ref)
    assert.is_true(troupe.is_error(err))
    assert.are.equal(30, kit():now())
  end)

  it("SEL-1 does not find an actor that has stopped", function()
    local system = kit().system
    local ref = system:spawn(ignore, "gone")
    ref:stop()
    kit():settle()

    assert.is_nil((system:actor_selection("/user/gone"):resolve_one(10)))
  end)

  it("SEL-1 refuses a path of a system with another name, and what is no path", function()
    local system = kit().system
    for _, path in ipairs { "troupe://other/user/here", "user/here", "", 42, {} } do
      raised_here(function() system:actor_selection(path) end)
    end
  end)

  it("SEL-1 tells whoever is at the path when it is told", function()
    local system = kit().system
    local seen = {}
    local selection = system:actor_selection("/user/name")
    local function record(number)
      return function(_, message) seen[#seen + 1] = number .. " " .. message end
    end
    local first = system:spawn(record "first", "name")
    selection:tell("a")
    first:stop()
    kit():settle()
    system:spawn(record "second", "name")
    selection:tell("b")
    kit():settle()

    assert.are.same({ "first a", "second b" }, seen)
  end)

  it("SEL-1 tells with a sender", function()
    local system = kit().system
    local sender
    system:spawn(function(actor) sender = actor.sender end, "target")
    local other = system:spawn(ignore)

    system:actor_selection("/user/target"):tell("message", other)
    kit():settle()

    assert.are.equal(other, sender)
  end)

  it("SEL-1 refuses a sender that is no ref of its system, at the caller's line", function()
    local other = troupe.system("other")
    local stranger = other:spawn(ignore)
    kit().system:spawn(ignore, "target")

    for _, path in ipairs { "/user/target", "/user/nobody" } do
      local selection = kit().system:actor_selection(path)
      assert.matches("sender must be a ref", raised_here(function() selection:tell("m", 42) end))
      assert.matches("must be of the selection's system %(got troupe://other/user/$1%)",
        raised_here(function() selection:tell("m", stranger) end))
    end
    other:terminate()
  end)

  it("SEL-1 dead-letters what it tells to nobody", function()
    local system = kit().system
    local letter
    system.events:subscribe(function(event) letter = event end, "dead_letter")
    local sender = system:spawn(ignore)

    system:actor_selection("/user/nobody"):tell("message", sender)
    kit():settle()

    assert.are.equal("message", letter.message)
    assert.are.equal(sender, letter.sender)
    assert.are.equal("unresolved", letter.reason)
  end)

  it("SEL-2 stops one routee of a pool by its path", function()
    local system = kit().system
    local pool = system:spawn(troupe.Router.round_robin(3, function(actor)
      actor:reply(actor.name)
    end), "workers")
    kit():settle()

    system:actor_selection("/user/workers/routee-2"):resolve_one():stop()
    kit():settle()

    local answers = {}
    for i = 1, 4 do answers[i] = pool:ask("who?") end
    table.sort(answers)
    assert.are.same({ "routee-1", "routee-1", "routee-3", "routee-3" }, answers)
  end)
end)
