local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

local function ignore() end

describe("paths and names", function()
  local kit = new_kit.each(before_each, after_each)

  --- Gives the actor `name` below /user and, below it, a child of its own named `child`.
  local function family(name, child)
    local ref
    local parent = kit().system:spawn({
      pre_start = function(actor) ref = actor:spawn(ignore, child) end,
      receive = ignore,
    }, name)
    kit():settle()
    return parent, ref
  end

  it("PATH-1 renders as system, guardian and names", function()
    local a, b = family("a", "b")

    assert.are.equal("troupe://demo/user/a", tostring(a.path))
    assert.are.equal("troupe://demo/user/a/b", tostring(b.path))
    assert.are.equal("troupe://demo/", tostring(a.path.parent.parent))
  end)

  it("PATH-2 has a name, a parent, elements and a system", function()
    local a, b = family("a", "b")

    assert.are.equal("b", b.path.name)
    assert.are.equal("b", b.name)
    assert.are.equal(a.path, b.path.parent)
    assert.are.same({ "user", "a", "b" }, b.path.elements)
    assert.are.equal("demo", b.path.system)
  end)

  it("PATH-2 is equal for the same text, also of another incarnation", function()
    local system = kit().system
    local first = system:spawn(ignore, "a")
    first:stop()
    kit():settle()
    local second = system:spawn(ignore, "a")

    assert.are.equal(first.path, second.path)
    assert.are_not.equal(first.path, system:spawn(ignore, "b").path)
  end)

  it("PATH-2 is the same in the actor as outside", function()
    local path, name
    local ref = kit().system:spawn(function(actor) path, name = actor.path, actor.name end, "a")
    ref:tell("look")
    kit():settle()

    assert.are.equal(ref.path, path)
    assert.are.equal("a", name)
  end)

  it("PATH-3 refuses a name that cannot be part of a path", function()
    local bad = {
      "", ".", "..", "a/b", "a\\b", "a*", "a?", "a\nb", "\0", "\x1f", "\x7f", "$1", "$",
      ("x"):rep(256), ("é"):rep(128), "\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80",
    }
    local system = kit().system
    for _, name in ipairs(bad) do
      local text = raised_here(function() system:spawn(ignore, name) end)
      assert.matches("troupe://demo/user", text, 1, true)
    end
    assert.are.equal(0, system:stats().actors)
  end)

  it("PATH-3 refuses a name that is no string", function()
    local system = kit().system
    for _, name in ipairs { 42, true, {} } do
      raised_here(function() system:spawn(ignore, name) end)
    end
  end)

  it("PATH-3 takes what merely looks unusual", function()
    local system = kit().system
    for _, name in ipairs { "a b", " ", "#1", "...", "a$", "-", "%d", "é", ("x"):rep(255) } do
      assert.are.equal("troupe://demo/user/" .. name, tostring(system:spawn(ignore, name).path))
    end
  end)

  it("PATH-3 quotes and escapes the name, and says why", function()
    local system = kit().system
    local function refused(name)
      return raised_here(function() system:spawn(ignore, name) end)
    end

    assert.matches('"a/b"', refused("a/b"), 1, true)
    assert.matches('"%$1".*%$', refused("$1"))
    assert.matches("255", refused(("x"):rep(256)))
    assert.matches("UTF%-8", refused("\xff"))
    assert.is_nil(refused("a\x01b"):find("\x01", 1, true))
    assert.is_nil(refused("a\xffb"):find("\xff", 1, true))
  end)

  it("PATH-3 names the path of the parent", function()
    local text
    kit().system:spawn({
      pre_start = function(actor)
        text = raised_here(function() actor:spawn(ignore, "a/b") end)
      end,
      receive = ignore,
    }, "parent")
    kit():settle()

    assert.matches("troupe://demo/user/parent", text, 1, true)
  end)

  it("PATH-4 numbers actors without a name, for each parent", function()
    local system = kit().system
    local first, second = system:spawn(ignore), system:spawn(ignore)
    local _, below = family("parent")

    local n = tonumber(first.name:match("^%$(%d+)$"))
    assert.are.equal("$" .. n + 1, second.name)
    assert.are.equal("$" .. n, below.name)
  end)

  it("PATH-4 never uses a number again", function()
    local system = kit().system
    local taken = {}
    for _ = 1, 5 do
      local ref = system:spawn(ignore)
      assert.is_nil(taken[ref.name])
      taken[ref.name] = true
      ref:stop()
      kit():settle()
    end
  end)

  it("PATH-4 counts on when the parent restarts", function()
    local names = {}
    local parent = kit().system:spawn({
      pre_start = function(actor) names[#names + 1] = actor:spawn(ignore).name end,
      receive = function() error("restart") end,
    })
    parent:tell("fail")
    kit():settle()

    assert.are.equal(2, #names)
    assert.are_not.equal(names[1], names[2])
  end)

  it("PATH-5 refuses a name that a live sibling holds", function()
    local system = kit().system
    system:spawn(ignore, "taken")

    local text = raised_here(function() system:spawn(ignore, "taken") end)

    assert.matches("troupe://demo/user/taken", text, 1, true)
    assert.are.equal(1, system:stats().actors)
  end)

  it("PATH-5 lets children of other parents have the same name", function()
    local _, first = family("a", "x")
    local _, second = family("x", "a")

    assert.are.equal("troupe://demo/user/a/x", tostring(first.path))
    assert.are.equal("troupe://demo/user/x/a", tostring(second.path))
  end)

  it("PATH-5 frees a name when its holder has fully stopped, and not before", function()
    local system = kit().system
    local holder = system:spawn({
      receive = ignore,
      post_stop = function() troupe.sleep(50) end,
    }, "name")
    holder:stop()
    kit():advance(49)
    assert.is_false(pcall(system.spawn, system, ignore, "name"))

    kit():advance(1)

    assert.are.equal("name", system:spawn(ignore, "name").name)
  end)

  it("PATH-6 tells incarnations of a name apart", function()
    local system = kit().system
    local first = system:spawn(ignore, "name")
    first:stop()
    kit():settle()
    local second = system:spawn(ignore, "name")

    assert.are_not.equal(first, second)
    assert.are.equal(second, system:actor_selection("/user/name"):resolve_one())
  end)

  it("PATH-6 gives equal refs for one incarnation, from wherever they come", function()
    local system = kit().system
    local inside, sender
    local ref = system:spawn(function(actor, to)
      inside = actor.ref
      if to then to:tell(nil, actor.ref) end
    end, "name")
    ref:tell(system:spawn(function(actor) sender = actor.sender end))
    kit():settle()

    assert.are.equal(ref, inside)
    assert.are.equal(ref, sender)
    assert.are.equal(ref, system:actor_selection("/user/name"):resolve_one())
    assert.are_not.equal(ref, system:spawn(ignore))
  end)

  it("PATH-6 keeps the ref over a restart", function()
    local seen = {}
    local ref = kit().system:spawn(function(actor, message)
      seen[#seen + 1] = actor.ref
      if message == "fail" then error("restart") end
    end)
    ref:tell("fail")
    ref:tell("go on")
    kit():settle()

    assert.are.equal(ref, seen[1])
    assert.are.equal(ref, seen[2])
  end)
end)
