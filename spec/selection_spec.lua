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

  describe("with wildcards", function()
    local function spawn(names, behavior)
      for _, name in ipairs(names) do kit().system:spawn(behavior or ignore, name) end
    end

    --- What a path selects now: the names below /user, or whole paths of others.
    local function selected(path)
      local names = {}
      for i, ref in ipairs(kit().system:actor_selection(path):resolve()) do
        names[i] = tostring(ref):gsub("^troupe://demo/user/", "")
      end
      return names
    end

    it("SEL-3 lists the live actors that match, in the order they were spawned", function()
      local refs = {}
      for i, name in ipairs { "c", "a", "b" } do refs[i] = kit().system:spawn(ignore, name) end
      refs[2]:stop()
      kit():settle()

      local list = kit().system:actor_selection("/user/*"):resolve()

      assert.are.equal(2, #list)
      assert.are.equal(refs[1], list[1])
      assert.are.equal(refs[3], list[2])
    end)

    it("SEL-3 gives a list of one or none for a path without wildcards", function()
      spawn { "a" }

      assert.are.same({ "a" }, selected "/user/a")
      assert.are.same({ "a" }, selected "troupe://demo/user/a")
      assert.are.same({}, selected "/user/b")
    end)

    it("SEL-3 takes * for any characters of a name, and ? for one", function()
      spawn { "routee-1", "routee-10", "router", "worker", "wørker", "w" }
      local cases = {
        { "routee-*", { "routee-1", "routee-10" } },
        { "routee-?", { "routee-1" } },
        { "*1", { "routee-1" } },
        { "r*e*1*", { "routee-1", "routee-10" } },
        { "w?rker", { "worker", "wørker" } },
        { "w??rker", {} },
        { "w*", { "worker", "wørker", "w" } },
        { "?", { "w" } },
        { "w*?", { "worker", "wørker" } },
        { "*r*r", { "router", "worker", "wørker" } },
        { "*r*r*r", {} },
        { "**u*", { "routee-1", "routee-10", "router" } },
      }
      for _, case in ipairs(cases) do
        assert.are.same(case[2], selected("/user/" .. case[1]), case[1])
      end
    end)

    it("SEL-3 takes every other character as it is", function()
      local names = { "a.b", "a%b", "a-b", "[ab]", "(a)", "^a$", "a+", "%a", "a b", "axb", "b" }
      spawn(names)

      for _, name in ipairs(names) do
        assert.are.same({ name }, selected("/user/" .. name .. "*"))
        if name ~= "b" then assert.are.same({ name }, selected("/user/*" .. name)) end
      end
      assert.are.same({ "a.b", "a%b", "a-b", "a b", "axb" }, selected "/user/a?b")
    end)

    it("SEL-3 matches one element with one, wherever it stands", function()
      local function parent(children)
        return {
          pre_start = function(actor)
            for _, name in ipairs(children) do actor:spawn(ignore, name) end
          end,
          receive = ignore,
        }
      end
      spawn({ "one", "two" }, parent { "a", "b" })
      spawn({ "three" }, parent { "b", "cc" })
      kit():settle()

      assert.are.same({ "two/a", "two/b", "three/b", "three/cc" }, selected "/user/t*/*")
      assert.are.same({ "one/b", "two/b", "three/b" }, selected "/user/*/b")
      assert.are.same({ "three/cc" }, selected "troupe://demo/*/*/??")
      assert.are.same({ "one", "two", "three" }, selected "/user/*")
      assert.are.same({}, selected "/user/*/*/*")
    end)

    it("SEL-3 selects the guardians by /*, who ignore what they are told", function()
      spawn { "a" }

      assert.are.same({ "troupe://demo/user", "troupe://demo/system" }, selected "/*")
      kit().system:actor_selection("/*"):tell(troupe.PoisonPill)
      kit():settle()
      assert.are.same({ "a" }, selected "/user/*")
    end)

    it("SEL-3 tells all that match, once each, with the sender", function()
      local seen = {}
      local sender = kit().system:spawn(ignore, "sender")
      spawn({ "w1", "other", "w2" }, function(actor, message)
        seen[#seen + 1] = { actor.name, message, actor.sender }
      end)

      kit().system:actor_selection("/user/w?"):tell("hello", sender)
      kit():settle()

      assert.are.same({ { "w1", "hello", sender }, { "w2", "hello", sender } }, seen)
    end)

    it("SEL-3 tells whoever matches when it is told", function()
      local seen = {}
      local function record(actor) seen[#seen + 1] = actor.name end
      local selection = kit().system:actor_selection("/user/*")
      spawn({ "a" }, record)
      selection:tell("message")
      spawn({ "b" }, record)
      selection:tell("message")
      kit():settle()

      assert.are.same({ "a", "a", "b" }, seen)
    end)

    it("SEL-3 tells the others too when one refuses, and gives its refusal", function()
      local seen = {}
      for _, name in ipairs { "a", "full", "z" } do
        kit().system:spawn(function() seen[#seen + 1] = name end, name, {
          mailbox = { capacity = 1, overflow = "reject" },
        })
      end
      kit().system:actor_selection("/user/full"):tell("fill")

      local ok, err = kit().system:actor_selection("/user/*"):tell("message")
      kit():settle()

      assert.is_nil(ok)
      assert.is_true(troupe.is_error(err, "MailboxFullError"))
      assert.are.same({ "a", "full", "z" }, seen)
      assert.is_true(kit().system:actor_selection("/user/*"):tell("message"))
    end)

    it("SEL-3 dead-letters what it tells to nobody, once", function()
      local list = {}
      kit().system.events:subscribe(function(event) list[#list + 1] = event end, "dead_letter")
      spawn { "a" }

      assert.is_true(kit().system:actor_selection("/user/*/*"):tell("message"))
      kit():settle()

      assert.are.equal(1, #list)
      assert.are.equal("troupe://demo/user/*/*", list[1].recipient)
      assert.are.equal("unresolved", list[1].reason)
    end)

    it("SEL-3 refuses to resolve to one, at the caller's line", function()
      spawn { "a" }
      local selection = kit().system:actor_selection("/user/a*")

      assert.matches("resolve_one: troupe://demo/user/a%* may select many",
        raised_here(function() selection:resolve_one() end))
    end)

    it("SEL-3 selects nobody once the system has terminated", function()
      spawn { "a" }
      kit().system:terminate()

      assert.are.same({}, selected "/*")
      assert.are.same({}, selected "/user/a")
    end)

    it("SEL-3 takes no time to speak of for a name that nearly matches in many ways", function()
      spawn { ("a"):rep(255) }

      assert.are.same({}, selected("/user/" .. ("*a"):rep(100) .. "b"))
      assert.are.same({}, selected("/user/" .. ("*?"):rep(100) .. "b"))
    end)

    it("SEL-3 selects among a hundred thousand", function()
      local handled = 0
      local function count() handled = handled + 1 end
      for _ = 1, 100000 do kit().system:spawn(count) end
      local selection = kit().system:actor_selection("/user/$?*7")

      assert.are.equal(9999, #selection:resolve()) -- $17 to $99997
      selection:tell("message")
      kit():settle()
      assert.are.equal(9999, handled)
    end)
  end)

  it("ERR-2 a wait that is not possible raises at the line of whoever called", function()
    local seen = {}
    kit().system:spawn(function(actor)
      coroutine.wrap(function()
        local selection = actor.system:actor_selection("/user/x")
        for i, wait in ipairs {
          function() selection:resolve_one() end,
          function() troupe.graceful_stop(actor.ref, 10) end,
        } do
          local _, err = pcall(wait)
          local at = debug.getinfo(wait, "S").linedefined
          seen[i] = tostring(err):find(("selection_spec.lua:%d: "):format(at), 1, true) ~= nil
        end
      end)()
    end):tell("go")
    kit():settle()

    assert.are.same({ true, true }, seen)
  end)
end)
