--- What is measured: the floor, and what actors do all day.
---
--- A message's floor is one entry into Lua code and one call from there into C. An operation is
--- held against as many messages as it has of these: a message that is told and handled is one; an
--- ask is two, the request, and the reply that resumes who asked; a scatter over three is four, the
--- three routees and who asked; an actor's life is three, its spawning, a message, its stop. What
--- the runtime does in between, such as a router's turn, counts for nothing.
local floor = require "troupe_bench_floor"
local troupe = require "troupe"

local Router = troupe.Router

---@class Workload
---@field name string
---@field floor string      the name of the workload that is its floor
---@field messages integer  that one operation is held against
---@field size integer      operations in a round
---@field step integer      sizes must be multiples of it
---@field prepare fun(system: troupe.System, n: integer): fun(), fun()  what is measured; and what
---  raises, when asked afterwards, unless all n operations were done

local function expect(what, got, wanted)
  if got == wanted then return end
  error(("%s: %s instead of %s"):format(what, got, wanted), 0)
end

-- The floor, and ping-pong ------------------------------------------------------------------------

-- Players run in the floor as they are.

local function integer_player()
  local handled, peer = 0, nil
  return {
    meet = function(other) peer = other end,
    handled = function() return handled end,
    receive = function(_, left)
      handled = handled + 1
      if left > 1 then peer:tell(left - 1) end
    end,
  }
end

local function integer(left) return left end

local function table_player()
  local handled, peer = 0, nil
  return {
    meet = function(other) peer = other end,
    handled = function() return handled end,
    receive = function(_, ball)
      handled = handled + 1
      if ball.left > 1 then peer:tell { left = ball.left - 1 } end
    end,
  }
end

local function ball(left) return { left = left } end

local function floor_of(new_player, message)
  return function(_, n)
    local player, peer = new_player(), floor.peer()
    player.meet(peer)
    return function() floor.calls(player.receive, {}, message(2), n) end, function()
      expect("calls handled", player.handled(), n)
      expect("calls of tell", peer:told(), n)
    end
  end
end

local function ping_pong(new_player, message)
  return function(system, n)
    local ping, pong = new_player(), new_player()
    local first, second = system:spawn(ping.receive), system:spawn(pong.receive)
    ping.meet(second)
    pong.meet(first)
    return function()
      first:tell(message(n))
      system:run()
    end, function()
      expect("messages handled", ping.handled() + pong.handled(), n)
    end
  end
end

-- Telling -----------------------------------------------------------------------------------------

local HOW_MANY = "how many?"

local function tell(batch)
  return function(system, n)
    local handled, confirmed = 0, 0
    local counter = system:spawn(function(actor, message)
      if message == HOW_MANY then
        actor:reply(handled)
      else
        handled = handled + 1
      end
    end)
    return function()
      for told = batch, n, batch do
        for i = 1, batch do counter:tell(i) end
        if counter:ask(HOW_MANY) == told then confirmed = confirmed + 1 end
      end
    end, function()
      expect("messages handled", handled, n)
      expect("batches confirmed", confirmed, n // batch)
    end
  end
end

local function round_robin(routees, batch)
  return function(system, n)
    local handled = 0
    local pool = system:spawn(Router.round_robin(routees, function() handled = handled + 1 end))
    return function()
      for _ = 1, n // batch do
        for i = 1, batch do pool:tell(i) end
        system:run()
      end
    end, function()
      expect("messages handled", handled, n)
      expect("actors", system:stats().actors, routees + 1)
    end
  end
end

-- Asking ------------------------------------------------------------------------------------------

--- `callers` tasks ask what `serve` spawned; each question reaches `reached` handlers.
local function ask(callers, reached, serve)
  return function(system, n)
    local handled, answered = 0, 0
    local server = serve(system, function(actor, question)
      handled = handled + 1
      actor:reply(question)
    end)
    local function caller()
      for question = 1, n // callers do
        if server:ask(question) == question then answered = answered + 1 end
      end
    end
    return function()
      for _ = 1, callers do system:go(caller) end
      system:run()
    end, function()
      expect("questions handled", handled, n * reached)
      expect("right answers", answered, n)
    end
  end
end

local function one(system, receive) return system:spawn(receive) end

local function three(system, receive)
  return system:spawn(Router.scatter_gather_first_completed(3, receive))
end

-- Spawning ----------------------------------------------------------------------------------------

local function spawn(batch)
  return function(system, n)
    local handled = 0
    local function receive() handled = handled + 1 end
    local actors = system:stats().actors
    return function()
      for done = batch, n, batch do
        for i = 1, batch do
          local actor = system:spawn(receive)
          actor:tell(i)
          actor:stop()
        end
        system:run()
        if handled ~= done then return end
      end
    end, function()
      expect("messages handled", handled, n)
      expect("actors left", system:stats().actors - actors, 0)
    end
  end
end

-- The list ----------------------------------------------------------------------------------------

local function workload(name, its_floor, messages, size, step, prepare)
  return {
    name = name,
    floor = its_floor,
    messages = messages,
    size = size,
    step = step,
    prepare = prepare,
  }
end

local CALL, TABLE = "floor: a call", "floor: a call and a fresh table"

---@type Workload[]
return {
  workload(CALL, CALL, 1, 4000000, 1, floor_of(integer_player, integer)),
  workload(TABLE, TABLE, 1, 1000000, 1, floor_of(table_player, ball)),
  workload("ping-pong, an integer", CALL, 1, 2000000, 1, ping_pong(integer_player, integer)),
  workload("ping-pong, a fresh table", TABLE, 1, 1000000, 1, ping_pong(table_player, ball)),
  workload("tell, batches of 1,000", CALL, 1, 2000000, 1000, tell(1000)),
  workload("tell, batches of 10,000", CALL, 1, 2000000, 10000, tell(10000)),
  workload("round-robin of 8", CALL, 1, 1000000, 1000, round_robin(8, 1000)),
  workload("ask, one at a time", CALL, 2, 500000, 1, ask(1, 1, one)),
  workload("ask, 1,000 in flight", CALL, 2, 500000, 1000, ask(1000, 1, one)),
  workload("scatter over 3, 100 in flight", CALL, 4, 200000, 100, ask(100, 3, three)),
  workload("spawn, tell, stop, by 100", CALL, 3, 100000, 100, spawn(100)),
}
