local troupe = require "troupe"
local testkit = require "troupe.testkit"
local new_kit = require "spec.support.kit"
local pools = require "spec.support.pools"
local raised_here = require "spec.support.raised_here"

local Router = troupe.Router

local recorder, routee, stop_routee = pools.recorder, pools.routee, pools.stop_routee
local dead_letters, tell_each = pools.dead_letters, pools.tell_each

local function echo(actor, message) actor:reply(message) end

local function itself(message) return message end

describe("consistent hashing", function()
  local kit = new_kit.each(before_each, after_each)

  local function spawn(size, behavior, options)
    options = options or {}
    options.hash_key = options.hash_key or itself
    return kit().system:spawn(Router.consistent_hashing(size, behavior, options), "workers")
  end

  -- Where -----------------------------------------------------------------------------------------

  -- What must never change, or a new version would find no key where the old one has put it. Worked
  -- out by another program, from the papers.
  local places = {
    { "", 1, 6 },
    { "user-1", 1, 29 },
    { "user-2", 2, 29 },
    { "user-42", 2, 6 },
    { "9223372036854775807", 3, 26 },
    { "gr\u{fc}n", 3, 3 },
    { "\0\xff", 3, 29 },
    { ("x"):rep(1000), 3, 10 },
    { 42, 5, 28 },
    { -7, 2, 30 },
    { math.maxinteger, 3, 26 },
    { 0.5, 1, 17 },
    { -1e300, 5, 24 },
    { math.huge, 4, 27 },
    { true, 2, 28 },
    { false, 5, 19 },
  }

  for at, size in ipairs { 5, 32 } do
    it(("RTR-16 has a place for each key, for ever (%d routees)"):format(size), function()
      local found = {}
      local pool = spawn(size, function(actor, n) found[n] = actor.name end, {
        hash_key = function(n) return places[n][1] end,
      })

      for n = 1, #places do pool:tell(n) end
      kit():settle()

      for n, place in ipairs(places) do
        assert.are.equal("routee-" .. place[at + 1], found[n], tostring(place[1]))
      end
    end)
  end

  it("RTR-16 sends a key to the same routee, whatever comes in between", function()
    local seen = {}
    local pool = spawn(8, recorder(seen))

    for _ = 1, 3 do tell_each(kit(), pool, "ann", "bob", "cid", "dan") end

    for n = 5, 12 do assert.are.equal(seen[n - 4], seen[n]) end
  end)

  it("RTR-16 takes an integer, the float of the same value and its digits for one key", function()
    local names = {}
    local pool = spawn(1000, function(actor) names[actor.name] = true end)

    for n = -20, 20 do
      tell_each(kit(), pool, n, n + 0.0, tostring(n))
    end

    local count = 0
    for _ in pairs(names) do count = count + 1 end
    assert.is_true(count <= 41, count .. " routees for 41 keys")
  end)

  it("RTR-16 asks hash_key once for each message, with the message", function()
    local asked = {}
    local pool = spawn(2, echo, { hash_key = function(...)
      asked[#asked + 1] = table.pack(...)
      return "key"
    end })
    local message = { payload = 1 }

    tell_each(kit(), pool, message)

    assert.are.equal(1, #asked)
    assert.are.equal(1, asked[1].n)
    assert.are.equal(message, asked[1][1])
  end)

  it("RTR-16 takes an object that can be called for hash_key", function()
    local object = setmetatable({}, { __call = function() return "key" end })
    local pool = spawn(2, echo, { hash_key = object })

    assert.are.equal("a", (pool:ask("a")))
  end)

  it("RTR-16 needs no key for a Broadcast", function()
    local seen = {}
    local pool = spawn(2, recorder(seen), { hash_key = function() error("not asked") end })

    tell_each(kit(), pool, troupe.Broadcast("all"))

    assert.are.same({ "routee-1:all", "routee-2:all" }, seen)
  end)

  -- How many --------------------------------------------------------------------------------------

  local KEYS = 10000

  --- The number of the routee of each of 10,000 keys, in a pool of `size` that has lost `without`.
  local function placement(size, without)
    local other = testkit.system("demo")
    local found = {}
    local pool = other.system:spawn(Router.consistent_hashing(size, function(actor, n)
      found[n] = math.tointeger(actor.name:match("%d+$"))
    end, { hash_key = function(n) return "key-" .. n end }), "workers")
    other:settle()
    if without then stop_routee(other, without) end
    for n = 1, KEYS do pool:tell(n) end
    other:settle()
    other.system:terminate()
    return found
  end

  local function shares(found, size)
    local counts = {}
    for i = 1, size do counts[i] = 0 end
    for _, place in ipairs(found) do counts[place] = counts[place] + 1 end
    return counts
  end

  for _, size in ipairs { 2, 3, 10, 100 } do
    it(("RTR-16 spreads keys as evenly as chance would (%d routees)"):format(size), function()
      local share = KEYS / size
      local deviation = math.sqrt(share * (1 - 1 / size))

      for number, count in ipairs(shares(placement(size), size)) do
        assert.is_true(math.abs(count - share) < 4 * deviation,
          ("routee %d has %d keys"):format(number, count))
      end
    end)
  end

  for _, leaving in ipairs { 1, 4, 10 } do
    it(("RTR-16 moves the keys of a routee that leaves, and no others (%d of 10)"):format(leaving),
      function()
        local before, after = placement(10), placement(10, leaving)

        local moved = {}
        for n = 1, KEYS do
          if before[n] == leaving then
            moved[#moved + 1] = after[n]
          else
            assert.are.equal(before[n], after[n])
          end
        end

        assert.is_true(math.abs(#moved - KEYS / 10) < 100, #moved .. " keys moved")
        for number, count in ipairs(shares(moved, 10)) do
          assert.is_true(count < #moved / 9 + 50, ("routee %d got %d"):format(number, count))
        end
      end)
  end

  it("RTR-16 moves to a new routee its share of the keys, and no others", function()
    local before, after = placement(10), placement(11)

    local moved = 0
    for n = 1, KEYS do
      if after[n] == 11 then
        moved = moved + 1
      else
        assert.are.equal(before[n], after[n])
      end
    end

    assert.is_true(math.abs(moved - KEYS / 11) < 100, moved .. " keys moved")
  end)

  it("RTR-16 moves keys to a routee that is added, and back when it is removed", function()
    local found = {}
    local pool = spawn(10, function(actor, n) found[n] = actor.name end)
    local function place_all()
      found = {}
      for n = 1, 1000 do pool:tell(n) end
      kit():settle()
      return found
    end

    local before = place_all()
    pool:ask(troupe.AddRoutees(1))
    local grown = place_all()
    pool:ask(troupe.RemoveRoutees(1))
    local after = place_all()

    local moved = 0
    for n = 1, 1000 do
      if grown[n] == "routee-11" then
        moved = moved + 1
      else
        assert.are.equal(before[n], grown[n])
      end
    end
    assert.is_true(moved > 50, moved .. " keys moved")
    assert.are.same(before, after)
  end)

  it("RTR-16 is a strategy of groups, whose members stand for their places", function()
    local seen = {}
    for _, name in ipairs { "a", "b", "c" } do kit().system:spawn(recorder(seen), name) end
    local group = kit().system:spawn(Router.group("consistent_hashing",
      { "/user/a", "/user/b", "/user/c" }, { hash_key = itself }))
    local keys = { "ann", "bob", "cid", "dan", "eve", "flo" }

    tell_each(kit(), group, table.unpack(keys))
    kit().system:actor_selection("/user/b"):resolve_one():stop()
    kit():settle()
    tell_each(kit(), group, table.unpack(keys))
    kit().system:spawn(recorder(seen), "b")
    tell_each(kit(), group, table.unpack(keys))

    for n = 1, #keys do
      local first, second, third = seen[n], seen[n + #keys], seen[n + 2 * #keys]
      assert.are.equal(first, third)
      if first:find("^b:") then
        assert.is_nil(second:find("^b:"))
      else
        assert.are.equal(first, second)
      end
    end
  end)

  it("RTR-16 needs a hash_key in groups, which others refuse", function()
    local actors = { "/user/a" }

    assert.matches("Router%.group: hash_key must be a function",
      raised_here(function() Router.group("consistent_hashing", actors) end))
    assert.matches('Router%.group: unknown option "hash_key" %(known: none%)',
      raised_here(function() Router.group("random", actors, { hash_key = itself }) end))
  end)

  -- Lives -----------------------------------------------------------------------------------------

  -- Of a pool of three: ann and cid go to routee-1, bob to routee-2, dan to routee-3.
  local friends = { "ann", "bob", "cid", "dan" }

  it("RTR-16 keeps the keys of a routee over its restart", function()
    local seen = {}
    local pool = spawn(3, recorder(seen))
    kit():settle()

    routee(kit(), 3):kill()
    tell_each(kit(), pool, table.unpack(friends))

    assert.are.same({ "routee-1:ann", "routee-2:bob", "routee-1:cid", "routee-3:dan" }, seen)
  end)

  it("RTR-16 keeps all keys over the router's restart", function()
    local seen = {}
    local pool = spawn(3, recorder(seen))
    kit():settle()

    pool:kill()
    tell_each(kit(), pool, table.unpack(friends))

    assert.are.same({ "routee-1:ann", "routee-2:bob", "routee-1:cid", "routee-3:dan" }, seen)
  end)

  it("RTR-16 gives the keys of a routee that leaves to others", function()
    local seen = {}
    local pool = spawn(3, recorder(seen))
    kit():settle()

    stop_routee(kit(), 3)
    tell_each(kit(), pool, table.unpack(friends))

    assert.are.same({ "routee-1:ann", "routee-2:bob", "routee-1:cid", "routee-2:dan" }, seen)
  end)

  it("RTR-16 gives them to others while it stops, and back when it is respawned", function()
    local seen = {}
    local pool = spawn(3, {
      receive = recorder(seen),
      post_stop = function() troupe.sleep(100) end,
    }, { on_routee_stop = "respawn" })
    kit():settle()

    stop_routee(kit(), 3)
    tell_each(kit(), pool, "dan")
    kit():advance(100)
    tell_each(kit(), pool, "dan")

    assert.are.same({ "routee-2:dan", "routee-3:dan" }, seen)
    pool:stop()
    kit():advance(100)
  end)

  it("RTR-16 dead-letters its share under keep", function()
    local seen = {}
    local pool = spawn(3, recorder(seen), { on_routee_stop = "keep" })
    local letters = dead_letters(kit())
    kit():settle()

    stop_routee(kit(), 3)
    tell_each(kit(), pool, table.unpack(friends))

    assert.are.same({ "routee-1:ann", "routee-2:bob", "routee-1:cid" }, seen)
    assert.are.equal(1, #letters)
    assert.are.equal("dan", letters[1].message)
  end)

  it("RTR-16 finds nobody when hash_key has stopped them all", function()
    local routees
    local pool = spawn(2, echo, { hash_key = function()
      for _, ref in ipairs(routees) do ref:stop() end
      return "key"
    end })
    kit():settle()
    routees = { routee(kit(), 1), routee(kit(), 2) }

    local _, err = pool:ask("a", 60000)

    assert.is_true(troupe.is_error(err, "NoRouteesError"), tostring(err))
    assert.are.equal(0, kit():now())
  end)

  -- Wrong keys ------------------------------------------------------------------------------------

  for fault, hash_key in pairs {
    ["raises"] = function() error("no key") end,
    ["gives nothing"] = function() end,
    ["gives a table"] = function() return { "key" } end,
    ["gives NaN"] = function() return 0 / 0 end,
    ["gives a function"] = function() return print end,
    ["gives a ref"] = function() return routee(kit(), 1) end,
    ["gives userdata"] = function() return io.stdout end,
    ["gives what has a __tostring that raises"] = function()
      return setmetatable({}, { __tostring = function() error("no text") end })
    end,
    ["waits"] = function() troupe.sleep(1) end,
    ["yields"] = function() return coroutine.yield() end,
    ["loops"] = function() while true do end end,
  } do
    it("RTR-16 a hash_key that " .. fault .. " costs one message", function()
      local seen = {}
      local letters = dead_letters(kit())
      local pool = spawn(2, recorder(seen), { hash_key = function(message)
        if message == "bad" then return hash_key() end
        return "ann"
      end })

      tell_each(kit(), pool, "a", "bad", "b")

      assert.are.same({ "routee-1:a", "routee-1:b" }, seen)
      assert.are.equal(1, #letters)
      assert.are.same({ "bad", "strategy-error" }, { letters[1].message, letters[1].reason })
      local errors = {}
      for _, record in ipairs(kit().logs) do
        if record.level == "error" then errors[#errors + 1] = record end
      end
      assert.are.equal(1, #errors)
      assert.are.equal("troupe://demo/user/workers", tostring(errors[1].path))
      assert.matches("^hash_key raised: ", errors[1].message)
      assert.matches("stack traceback:", errors[1].fields.traceback)
    end)

    it("RTR-16 a hash_key that " .. fault .. " fails an ask at once", function()
      local pool = spawn(2, echo, { hash_key = function() return hash_key() end })

      local value, err = pool:ask("a")

      assert.is_nil(value)
      assert.is_true(troupe.is_error(err, "StrategyError"), tostring(err))
      assert.are.equal(0, kit():now())
    end)
  end

  it("RTR-16 a hash_key fails an ask with what it raised", function()
    local pool = spawn(2, echo, { hash_key = function() error("no key", 0) end })

    local _, err = pool:ask("a")

    assert.matches("^StrategyError: troupe://demo/.*: the hash_key failed$", tostring(err))
    assert.are.equal("no key", err.cause)
  end)

  -- Options ---------------------------------------------------------------------------------------

  for name, options in pairs {
    ["no options"] = false,
    ["options without a hash_key"] = {},
    ["a hash_key that is no function"] = { hash_key = "id" },
  } do
    it("RTR-16 refuses " .. name, function()
      local text = raised_here(function()
        Router.consistent_hashing(2, echo, options or nil)
      end)

      assert.matches("Router%.consistent_hashing: hash_key must be a function", text)
    end)
  end

  it("RTR-16 refuses an unknown option, and one of a routee that is wrong", function()
    local text = raised_here(function()
      Router.consistent_hashing(2, echo, { hash_key = itself, replicas = 100 })
    end)
    assert.matches('unknown option "replicas" %(known: hash_key, on_routee_stop, resizer%)', text)

    text = raised_here(function()
      Router.consistent_hashing(2, echo, { hash_key = itself }, { throughput = 0 })
    end)
    assert.matches("throughput must be", text)
  end)

  it("RTR-16 gives its routees their options", function()
    local pool = spawn(1, function() end)
    pool:stop()
    kit():settle()
    pool = kit().system:spawn(Router.consistent_hashing(1, function() end, { hash_key = itself },
      { mailbox = { capacity = 7 } }), "workers")
    kit():settle()

    assert.are.equal(7, kit().system:inspect(routee(kit(), 1)).mailbox.capacity)
    assert.matches("consistent_hashing", kit().system:inspect(pool).behavior)
  end)
end)
