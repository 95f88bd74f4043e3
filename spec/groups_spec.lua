--- Groups: routers to actors that exist.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"
local testkit = require "troupe.testkit"

local Router, Broadcast, GetRoutees = troupe.Router, troupe.Broadcast, troupe.GetRoutees

local function echo(actor, message) actor:reply(message) end
local function first_routee(routees) return routees[1] end

local strategies = { "round_robin", "random", "broadcast", "smallest_mailbox", first_routee }

local function name_of(strategy)
  return type(strategy) == "string" and strategy or "a function"
end

describe("groups", function()
  local kit = new_kit.each(before_each, after_each)
  local seen

  before_each(function() seen = {} end)

  local function spawn(...) return kit().system:spawn(...) end

  -- An actor that notes "name:message".
  local function recorder(name)
    return spawn(function(actor, message)
      seen[#seen + 1] = actor.name .. ":" .. tostring(message)
    end, name)
  end

  -- Each message when the one before has been dealt with; gives what was noted since.
  local function tell_each(group, ...)
    seen = {}
    for _, message in ipairs { ... } do
      group:tell(message)
      kit():settle()
    end
    return seen
  end

  local function dead_letters()
    local letters = {}
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    return letters
  end

  local function stop(ref)
    ref:stop()
    kit():settle()
  end

  describe("route", function()
    for _, strategy in ipairs(strategies) do
      it("RTR-17 by " .. name_of(strategy), function()
        local a = spawn(echo, "a")
        local group = spawn(Router.group(strategy, { a, "/user/a" }))

        local value, err, from = group:ask("hello")

        assert.are.same({ "hello", nil, a }, { value, err, from })
      end)

      it("RTR-17 every Broadcast to every member, by " .. name_of(strategy), function()
        local group = spawn(Router.group(strategy, { recorder("a"), recorder("b") }))

        assert.are.same({ "a:hello", "b:hello" }, tell_each(group, Broadcast("hello")))
      end)

      it("RTR-17 with the sender as it was, by " .. name_of(strategy), function()
        local sender
        local client = spawn(echo, "client")
        local a = spawn(function(actor) sender = actor.sender end)

        spawn(Router.group(strategy, { a })):tell("hello", client)
        kit():settle()

        assert.are.equal(client, sender)
      end)

      it("RTR-19 an ask nowhere at once when nobody is left, by " .. name_of(strategy), function()
        local a = recorder("a")
        local group = spawn(Router.group(strategy, { a, "/user/b" }), "group")
        local letters = dead_letters()
        stop(a)

        local value, err = group:ask("hello")
        group:tell("hello")
        kit():settle()

        assert.is_nil(value)
        assert.is_true(troupe.is_error(err, "NoRouteesError"))
        assert.are.equal(0, kit():now())
        assert.are.equal(1, #letters)
        assert.are.same({ "no-routees", "troupe://demo/user/group" },
          { letters[1].reason, letters[1].recipient })
      end)
    end

    it("RTR-17 to refs, short paths, full paths and path values", function()
      local a, d = recorder("a"), recorder("d")
      recorder("b")
      recorder("c")
      local group = spawn(Router.group("round_robin",
        { a, "/user/b", "troupe://demo/user/c", d.path }))

      assert.are.same({ "a:1", "b:2", "c:3", "d:4", "a:5" }, tell_each(group, 1, 2, 3, 4, 5))
    end)

    it("RTR-17 to actors wherever they are in the tree", function()
      spawn(function(actor, name)
        actor:spawn(function(child, message) child:reply(message) end, name)
      end, "parent"):tell("child")
      local group = spawn(Router.group("random", { "/user/parent/child" }))

      assert.are.equal("hello", (group:ask("hello")))
    end)

    it("RTR-17 to everyone, with several replies for a sender", function()
      local answers = {}
      local client = spawn(function(actor) answers[#answers + 1] = actor.sender.name end)

      spawn(Router.group("broadcast", { spawn(echo, "a"), spawn(echo, "b") })):tell("hello", client)
      kit():settle()

      assert.are.same({ "a", "b" }, answers)
    end)

    it("RTR-17 to the shortest mailbox", function()
      local function slow() troupe.sleep(1000) end
      local a, b = spawn(slow), spawn(slow)
      a:tell("work")
      kit():settle()
      local group = spawn(Router.group("smallest_mailbox", { a, b }))

      group:tell("more")
      kit():settle()

      assert.are.same({ "waiting", "waiting" },
        { kit().system:inspect(a).state, kit().system:inspect(b).state })
    end)

    it("RTR-17 twice as often to who is in the list twice", function()
      local a, b = recorder("a"), recorder("b")
      local group = spawn(Router.group("round_robin", { a, b, "/user/a" }))

      assert.are.same({ "a:1", "b:2", "a:3", "a:4", "b:5", "a:6" },
        tell_each(group, 1, 2, 3, 4, 5, 6))
    end)

    it("RTR-17 with a function that gets those who are there now", function()
      local sizes = {}
      local a = recorder("a")
      local group = spawn(Router.group(function(routees, state)
        sizes[state.message_index + 1] = #routees
        return routees[#routees]
      end, { a, "/user/b" }))

      assert.are.same({ "a:1" }, tell_each(group, 1))
      recorder("b")
      assert.are.same({ "b:2" }, tell_each(group, 2))
      assert.are.same({ 1, 2 }, sizes)
    end)

    it("RTR-17 to actors that are routers", function()
      local pool = spawn(Router.round_robin(2, function(actor) actor:reply(actor.name) end))
      local group = spawn(Router.group("random", { pool }))

      assert.are.same({ "routee-1", "routee-2" }, { (group:ask("a")), (group:ask("b")) })
    end)

    it("RTR-17 as the routees of a pool", function()
      recorder("a")
      local pool = spawn(Router.round_robin(2, Router.group("random", { "/user/a" })))

      assert.are.same({ "a:1", "a:2" }, tell_each(pool, 1, 2))
    end)
  end)

  describe("notice", function()
    it("RTR-17 that a member has stopped", function()
      local letters = dead_letters()
      local a, b = recorder("a"), recorder("b")
      recorder("c")
      local group = spawn(Router.group("round_robin", { a, b, "/user/c" }))
      assert.are.same({ "a:1" }, tell_each(group, 1))

      stop(b)

      assert.are.same({ "c:2", "a:3", "c:4" }, tell_each(group, 2, 3, 4))
      stop(kit().system:actor_selection("/user/c"):resolve_one())
      assert.are.same({ "a:5", "a:6" }, tell_each(group, 5, 6))
      assert.are.same({}, letters)
    end)

    it("RTR-17 that a member handles its last mail", function()
      local a = spawn(function() troupe.sleep(100) end)
      local b = recorder("b")
      local group = spawn(Router.group("round_robin", { a, b }))
      a:tell("work")
      kit():settle()

      stop(a)

      assert.are.same({ "b:1", "b:2" }, tell_each(group, 1, 2))
    end)

    it("RTR-17 that there is an actor at a path", function()
      local group = spawn(Router.group("round_robin", { recorder("a"), "/user/b" }))
      assert.are.same({ "a:1", "a:2" }, tell_each(group, 1, 2))

      recorder("b")

      assert.are.same({ "a:3", "b:4" }, tell_each(group, 3, 4))
    end)

    it("RTR-17 that there is an actor at a path again", function()
      local b = recorder("b")
      local group = spawn(Router.group("round_robin", { recorder("a"), "/user/b" }))
      assert.are.same({ "a:1", "b:2" }, tell_each(group, 1, 2))
      stop(b)
      assert.are.same({ "a:3", "a:4" }, tell_each(group, 3, 4))

      recorder("b")

      assert.are.same({ "a:5", "b:6" }, tell_each(group, 5, 6))
    end)

    it("RTR-17 that who comes back under the name of a ref is another", function()
      local a = recorder("a")
      local group = spawn(Router.group("round_robin", { a, recorder("b") }))
      stop(a)

      recorder("a")

      assert.are.same({ "b:1", "b:2" }, tell_each(group, 1, 2))
    end)

    it("RTR-17 what becomes of the routees of a pool", function()
      local pool = spawn(Router.round_robin(2, function(actor, message)
        seen[#seen + 1] = actor.name .. ":" .. message
      end), "pool")
      kit():settle()
      local group = spawn(Router.group("round_robin",
        { "/user/pool/routee-1", "/user/pool/routee-3" }))
      assert.are.same({ "routee-1:1", "routee-1:2" }, tell_each(group, 1, 2))

      pool:ask(troupe.AddRoutees(1))
      assert.are.same({ "routee-1:3", "routee-3:4" }, tell_each(group, 3, 4))

      pool:ask(troupe.RemoveRoutees(2))
      assert.are.same({ "routee-1:5" }, tell_each(group, 5))
    end)

    it("RTR-17 no restart of a member", function()
      local a = spawn(function(_, message)
        if message == "fail" then error("no disk") end
        seen[#seen + 1] = message
      end)
      local group = spawn(Router.group("round_robin", { a }))

      assert.are.same({ 1 }, tell_each(group, "fail", 1))
    end)

    it("RTR-17 who comes and goes while messages are in their mailbox", function()
      local letters = dead_letters()
      local a = recorder("a")
      recorder("b")
      local group = spawn(Router.group("round_robin", { a, "/user/b", "/user/c" }))
      kit():settle()

      spawn(function()
        group:tell(1)
        a:stop()
        recorder("c")
        for i = 2, 5 do group:tell(i) end
      end):tell("begin")
      kit():settle()

      table.sort(seen)
      assert.are.same({ "b:1", "b:3", "b:5", "c:2", "c:4" }, seen)
      assert.are.same({}, letters)
    end)
  end)

  describe("are asked", function()
    it("RTR-15 for those who get mail", function()
      local a, b = recorder("a"), recorder("b")
      local group = spawn(Router.group("random", { a, "/user/b", "/user/c", a }))

      assert.are.same({ a, b, a }, (group:ask(GetRoutees)))

      stop(a)
      local c = recorder("c")
      assert.are.same({ b, c }, (group:ask(GetRoutees)))
    end)

    it("RTR-15 in vain for more or for fewer, which they do not own", function()
      local a = recorder("a")
      local group = spawn(Router.group("random", { a }), "group")

      for _, request in ipairs { troupe.AddRoutees(1), troupe.RemoveRoutees(1) } do
        local size, err = group:ask(request)
        assert.is_nil(size)
        assert.is_true(troupe.is_error(err, "ResizeError"))
        assert.matches("troupe://demo/user/group: a group owns no routees", err.message, 1, true)
      end
      assert.are.same({ a }, (group:ask(GetRoutees)))
    end)
  end)

  describe("leave out", function()
    it("RTR-17 themselves, so that no message goes round and round", function()
      local letters = dead_letters()
      local group, heard = nil, 0
      local member = spawn(function()
        heard = heard + 1
        if heard == 2 then group:stop() end -- else it would send for ever
      end)
      group = spawn(Router.group("broadcast", { "/user/group", member }), "group")

      group:tell("hello")
      kit():settle()

      assert.are.equal(1, heard)
      assert.are.same({}, letters)
      assert.are.equal(1, #group:ask(GetRoutees))
    end)

  end)

  describe("own nobody:", function()
    it("RTR-17 stopping one leaves its members alone", function()
      local a, b = recorder("a"), recorder("b")
      local group = spawn(Router.group("round_robin", { a, b }))

      group:tell(1)
      group:tell(2)
      stop(group)

      assert.are.same({ "a:1", "b:2" }, seen)
      assert.are.equal(2, kit().system:stats().actors)
      assert.are.same({ "a:3" }, tell_each(a, 3))
    end)

    it("RTR-17 stopping one does not wait for its members", function()
      local a = spawn(function() troupe.sleep(1000) end)
      local group = spawn(Router.group("round_robin", { a }))
      group:tell("work")
      group:tell("work")

      assert.is_true(troupe.graceful_stop(group, 1))

      assert.are.equal(1, kit().system:inspect(a).queued)
    end)

    it("RTR-17 a restart leaves its members alone, and begins their turns anew", function()
      local starts = 0
      local function member(name)
        return spawn({
          pre_start = function() starts = starts + 1 end,
          receive = function(_, message) seen[#seen + 1] = name .. ":" .. message end,
        })
      end
      local group = spawn(Router.group("round_robin", { member("a"), member("b") }))
      assert.are.same({ "a:1" }, tell_each(group, 1))

      group:kill()
      kit():settle()

      assert.are.same({ "a:2", "b:3" }, tell_each(group, 2, 3))
      assert.are.equal(2, starts)
    end)

    it("RTR-17 their options are those of the group's own mailbox", function()
      local group = spawn(Router.group("random", { recorder("a") }), nil,
        { mailbox = { capacity = 1, overflow = "drop-new" } })
      kit():settle()

      group:tell(1)
      group:tell(2)
      kit():settle()

      assert.are.same({ "a:1" }, seen)
    end)

    it("INS-1 they are seen without children, by their strategy and how many they have", function()
      local group = spawn(Router.group("round_robin", { recorder("a"), "/user/b" }))
      local custom = spawn(Router.group(first_routee, { "/user/b" }))

      local outline = kit().system:inspect(group)

      assert.are.same({ "Router.group(round_robin, 2)", 0 },
        { outline.behavior, outline.children })
      assert.are.equal("Router.group(custom, 1)", kit().system:inspect(custom).behavior)
    end)
  end)

  describe("are made of", function()
    it("RTR-17 a list that may be changed afterwards", function()
      local a = recorder("a")
      local list = { a }
      local made = Router.group("random", list)
      list[1] = nil

      assert.are.same({ "a:1" }, tell_each(spawn(made), 1))
    end)

    it("RTR-17 no strategy that there is not", function()
      for _, strategy in ipairs { "round-robin", "", "custom", 1, true, {} } do
        local text = raised_here(function() Router.group(strategy, { "/user/a" }) end)
        assert.matches('Router.group: strategy must be one of "round_robin"', text, 1, true)
      end
      raised_here(function() Router.group(nil, { "/user/a" }) end)
    end)

    it("SG-11 no strategy that gathers, and the error says why", function()
      for _, strategy in ipairs {
        "scatter_gather_first_completed", "scatter_gather", "hedged", "tail_chopping",
      } do
        local text = raised_here(function() Router.group(strategy, { "/user/a" }) end)
        assert.matches(strategy .. " works with a pool alone", text, 1, true)
      end
    end)

    it("RTR-17 nothing but a list of one member at least", function()
      local a = recorder("a")

      for _, routees in ipairs { {}, { ref = a }, { a, ref = a }, { [2] = a }, 7, "/user/a", a } do
        local text = raised_here(function() Router.group("random", routees) end)
        assert.matches("Router.group: routees must be a list of refs and paths", text, 1, true)
      end
      raised_here(function() Router.group("random") end)
    end)

    it("RTR-17 no list that it does not say the flaw of", function()
      local many = {}
      for i = 1, 1000001 do many[i] = "/user/a" end
      for given, flaw in pairs {
        [{}] = "(got an empty one)",
        [{ [2] = "/user/a" }] = "(got a table with holes or other keys)",
        [many] = "(got 1000001 of them)",
        [7] = "(got 7)",
      } do
        local text = raised_here(function() Router.group("random", given) end)
        assert.matches("from 1 to 1000000 of them " .. flaw, text, 1, true)
      end
    end)

    it("RTR-17 no member that is neither an actor's ref nor its path", function()
      local a = recorder("a")
      local reply_ref
      local asked = spawn(function(actor) reply_ref = actor.sender end)
      kit():async(function() asked:ask("hello", 1) end)
      kit():advance(1)

      for _, member in ipairs {
        7, true, {}, echo, "", "a", "user/a", "troupe://demo", "/user/*", "/user/a?", reply_ref,
        "/usr/a", "/user/./a", "/user/$mine", "/user/a\\b", "/user/a\0", "/user/" .. ("a"):rep(256),
      } do
        local text = raised_here(function() Router.group("random", { a, member }) end)
        assert.matches("Router.group: routees[2] must be the ref of an actor or its path", text, 1,
          true)
      end
    end)

    it("RTR-17 no guardian, who ignores mail", function()
      local guardian
      spawn(function(actor) guardian = actor.parent end):tell("hello")
      kit():settle()

      for _, member in ipairs { "/", "//", "/user", "/user/", "/system", guardian,
        guardian.path } do
        local text = raised_here(function() Router.group("random", { member }) end)
        assert.matches("routees%[1%] must be .*, and no guardian", text)
      end
    end)

    it("RTR-17 no members of two systems", function()
      local a = recorder("a")
      local other = testkit.system("other").system
      local there = other:spawn(echo, "there")

      for _, routees in ipairs {
        { a, there }, { a, "troupe://other/user/b" }, { "troupe://demo/user/a", there },
        { "/user/a", "troupe://demo/user/a", "troupe://other/user/b" },
      } do
        local text = raised_here(function() Router.group("random", routees) end)
        assert.matches('must be of the system "demo", as those before it (got troupe://other/user/',
          text, 1, true)
      end
      other:terminate()
    end)

    it("RTR-17 nobody of another system than the one that spawns it", function()
      local other = testkit.system("other").system
      local there = other:spawn(echo, "there")

      for _, made in ipairs {
        Router.group("random", { there }),
        Router.group("random", { "/user/a", "troupe://other/user/there" }),
        Router.round_robin(1, Router.group("random", { there })),
      } do
        local text = raised_here(function() kit().system:spawn(made) end)
        assert.matches('spawn: a group must have members of the system "demo" alone', text, 1, true)
      end
      assert.are.equal(0, kit().system:stats().actors)
      other:terminate()
    end)

    it("RTR-17 nobody of another system of the same name", function()
      local other = testkit.system("demo").system
      local there = other:spawn(echo, "there")

      local group = Router.group("random", { "/user/a", there })
      local text = raised_here(function() kit().system:spawn(group) end)

      assert.matches("got troupe://demo/user/there", text, 1, true)
      other:terminate()
    end)

    it("RTR-17 no options that there are not", function()
      local text = raised_here(function()
        Router.group("random", { "/user/a" }, { resizer = {} })
      end)

      assert.matches('Router.group: unknown option "resizer"', text, 1, true)
    end)

    it("RTR-17 a behavior that can be spawned many times, also in other systems", function()
      local made = Router.group("random", { "/user/a" })
      recorder("a")
      local other = testkit.system("other").system
      other:spawn(echo, "a")

      assert.are.same({ "a:1", "a:2" }, tell_each(spawn(made), 1, 2))
      assert.are.equal("a", (spawn(function() end) and other:spawn(made):ask("a")))
      other:terminate()
    end)
  end)

  it("RTR-17 last longer than the refs that they were made with", function()
    local group = spawn(Router.group("random", { recorder("a") }))
    collectgarbage()
    collectgarbage()

    assert.are.same({ "a:1" }, tell_each(group, 1))
  end)
end)
