--- What a router does with its mail, as docs/behaviour.md says: a queue, a pool, and strategies of
--- a few lines. The model has no scheduler: it is told what is seen, one thing after another. What
--- a router does by itself is not seen; `step` does the next of it (see router_check.lua).
---
--- A routee: `id`, `name`; `queue` of items, and `hand`, the item that its handler has; `closed`,
--- takes no more mail; `ending`, handles no more; `killed`, is to fail; `restarting`.
--- An item: `kind` is mail, pill, kill or request; `message`, `sender`, `is_broadcast`; `slot`, the
--- number under which it was asked; `change`, what a request does to the size of the pool.
local rendezvous = require "spec.model.rendezvous"

local Router = {}
Router.__index = Router

--- Raised when what is seen has several explanations, which is rare: the rest is not checked.
Router.UNDECIDED = {}

--- Raises what is wrong.
local function must(condition, message, ...)
  if not condition then error(message:format(...), 0) end
end

-- Strategies --------------------------------------------------------------------------------------

local function name_of(id) return id:match("^[^.]+") end

local function number_of(id) return math.tointeger(name_of(id):match("%d+$")) end

local strategies = {}

-- RTR-6
function strategies.round_robin(self)
  local picked = self.members[self.next]
  self.next = self.next % #self.members + 1
  return { picked }
end

-- RTR-7: whoever got it may have been drawn, if it is one of them.
function strategies.random(self, item)
  local name = self.went_to[item.message.n]
  for _, id in ipairs(self.members) do
    if name_of(id) == name then return { id } end
  end
  if not name then error(Router.UNDECIDED, 0) end
  must(false, "%s is no routee", name)
end

-- RTR-8
function strategies.broadcast(self) return { table.unpack(self.members) } end

-- RTR-9
function strategies.smallest_mailbox(self)
  local best, least, count = self.next, math.huge, #self.members
  for place = self.next, self.next + count - 1 do
    local routee = self.routees[self.members[(place - 1) % count + 1]]
    local is_gone = not routee or routee.closed
    local depth = is_gone and math.huge or #routee.queue + (routee.hand and 1 or 0)
    if depth < least then best, least = (place - 1) % count + 1, depth end
  end
  self.next = best % count + 1
  return { self.members[best] }
end

-- RTR-16: nil when there is nothing to hash.
function strategies.consistent_hashing(self, item)
  local numbers, key = {}, item.message.key
  for place, id in ipairs(self.members) do numbers[place] = number_of(id) end
  return key and { self.members[rendezvous(tostring(key), numbers)] }
end

-- Who is in the pool ------------------------------------------------------------------------------

-- Routees stand in the order of their numbers; whose turn it is does not change.
function Router:enter(id)
  local number, place = number_of(id), #self.members + 1
  while place > 1 and number_of(self.members[place - 1]) > number do
    place = place - 1
  end
  if place <= self.next and #self.members > 0 then self.next = self.next + 1 end
  table.insert(self.members, place, id)
end

function Router:leave(id)
  for place, member in ipairs(self.members) do
    if member == id then
      table.remove(self.members, place)
      if place < self.next then self.next = self.next - 1 end
      if self.next > #self.members then self.next = 1 end
      return
    end
  end
end

function Router:spawn(name)
  local generation = (self.generations[name] or 0) + 1
  local id = ("%s.%d"):format(name, generation)
  self.generations[name] = generation
  self.routees[id] = { id = id, name = name, queue = {} }
  self:enter(id)
end

-- RTR-3, RTR-17: a group has those that are left of its list.
function Router:fill()
  self.members, self.next, self.routed, self.numbers = {}, 1, 0, 0
  if not self.options.is_group then return self:add(self.options.size) end
  for number = 1, self.options.size do
    local id = ("routee-%d.1"):format(number)
    if self.routees[id] and not self.routees[id].closed then self:enter(id) end
  end
end

function Router:add(count)
  for _ = 1, count do
    self.numbers = self.numbers + 1
    self:spawn("routee-" .. self.numbers)
  end
end

local function grants(times, now)
  while times[1] and now - times[1] >= 60000 do table.remove(times, 1) end
  if #times == 10 then return false end
  times[#times + 1] = now
  return true
end

-- RTR-12
function Router:close(routee)
  if routee.closed then return end
  routee.closed = true
  if self.options.on_routee_stop ~= "keep" then self:leave(routee.id) end
end

function Router:has_no_routees()
  for _, routee in pairs(self.routees) do
    if routee.id ~= "outsider" then return false end
  end
  return true
end

function Router:is_childless() return self.options.is_group or self:has_no_routees() end

-- Asks --------------------------------------------------------------------------------------------

local ERRORS = {
  ["stopped"] = "ActorStoppedError",
  ["mailbox-full"] = "MailboxFullError",
  ["no-routees"] = "NoRouteesError",
  ["strategy-error"] = "StrategyError",
}

-- The slot of an ask that has been heard of is gone.
function Router:settle(number, outcome)
  local slot = self.slots[number]
  if slot then slot.outcome = slot.outcome or outcome end
end

-- It is queued or in hand once more, or once less.
function Router:count(item, change)
  local slot = item and item.slot and self.slots[item.slot]
  if slot then slot.requests = slot.requests + change end
end

-- ASK-7: it is lost at `name`, and no reply may come. True when the asker knows, or is no asker.
function Router:is_told(item, name, reason)
  if not item.slot then return false end
  self:count(item, -1)
  local slot = self.slots[item.slot]
  if not slot then return true end
  if slot.requests == 0 then
    self:settle(item.slot, { error = ERRORS[reason], path = name })
  end
  return slot.outcome ~= nil
end

-- Mail --------------------------------------------------------------------------------------------

-- An event is published: it is to be seen, in its turn.
function Router:expect(...) self.expected[#self.expected + 1] = { ... } end

-- DL-1, DL-4: signals make no dead letters. Those of requests are left out here.
function Router:lose(item, name, reason)
  if self:is_told(item, name, reason) or not item.message then return end
  self:expect("letter", name, item.message.n, reason, item.sender)
end

-- MBX-3: room for one more, if that is the mailbox's way; false when the newcomer is shed, and
-- whether its sender hears of that.
function Router:makes_room(routee, item)
  local mailbox, queued = self.options.mailbox, {}
  for place, other in ipairs(routee.queue) do
    if other.kind == "mail" then queued[#queued + 1] = place end
  end
  if not mailbox or item.kind ~= "mail" or #queued < mailbox.capacity then return true end
  local policy, shed = mailbox.overflow, item
  if policy == "drop-head" then shed = table.remove(routee.queue, queued[1]) end
  self:expect("dropped", routee.name, shed.message.n, policy)
  if policy ~= "reject" then
    self:is_told(shed, routee.name, "mailbox-full")
  elseif not item.is_direct then
    self:lose(item, routee.name, "mailbox-full")
  end
  return policy == "drop-head", policy == "reject"
end

-- A copy for a routee. False when its sender hears that it was refused.
function Router:offer(id, item)
  local routee = self.routees[id]
  self:count(item, 1)
  if not routee or routee.closed then
    self:lose(item, name_of(id), "stopped")
    return true
  end
  if id ~= "outsider" then
    local has_room, is_refused = self:makes_room(routee, item)
    if not has_room then return not is_refused end
  end
  table.insert(routee.queue, item)
  if item.kind == "pill" then self:close(routee) end
  return true
end

-- The last copy answers for the request.
function Router:forward(ids, item)
  for i, id in ipairs(ids) do
    if i == #ids then self:count(item, -1) end
    self:offer(id, item)
  end
  if #ids == 0 then self:count(item, -1) end -- RTR-10: dropped
end

-- To those that were picked; nil when the strategy has failed (RTR-11).
function Router:follow(picked, item)
  if picked then return self:forward(picked, item) end
  if item.slot then self:settle(item.slot, { error = "StrategyError", path = "pool" }) end
  self:count(item, -1)
  self:expect("letter", "pool", item.message.n, "strategy-error", item.sender)
end

-- RTR-5, RTR-19
function Router:route(item)
  if #self.members == 0 then
    if item.slot then self:settle(item.slot, { error = "NoRouteesError", path = "pool" }) end
    self:lose(item, "pool", "no-routees")
  elseif item.is_broadcast then
    self:forward(strategies.broadcast(self), item)
  else
    self:follow(strategies[self.options.strategy](self, item), item)
  end
end

-- Ends --------------------------------------------------------------------------------------------

-- STOP-2
function Router:stop_hard(routee)
  if routee.ending then return end
  self:close(routee)
  routee.ending, routee.killed = true, false
  if routee.failed then self:is_told(routee.failed, routee.name, "stopped") end
end

-- STOP-1, but that it may be restarting (LIFE-6).
function Router:stop(routee)
  if routee.restarting then return self:stop_hard(routee) end
  if not routee.closed then self:offer(routee.id, { kind = "pill" }) end
end

function Router:stop_children(drains)
  if self.options.is_group then return end
  for id, routee in pairs(self.routees) do
    if id ~= "outsider" then
      if drains then self:stop(routee) else self:stop_hard(routee) end
    end
  end
end

-- RTR-13
function Router:begin_stop(drains)
  self.phase, self.is_closed, self.members = "stopping", true, {}
  self:stop_children(drains)
end

-- SUP-1: the default strategy.
function Router:fail()
  self.killed = false -- a kill leaves one alone that has failed already (SUP-11)
  if grants(self.restarts, self.now) then
    self:expect("failed", "pool", "restart")
    self.phase, self.members = "restarting", {}
    self:stop_children(false)
  else
    self:expect("failed", "pool", "stop")
    self:begin_stop(false)
  end
end

-- RTR-15: the last ones leave, whatever becomes of those that have stopped.
function Router:remove(count)
  for _ = 1, math.min(count, #self.members) do
    local id = self.members[#self.members]
    self:leave(id)
    if self.routees[id] then
      self.routees[id].is_removed = true
      self:stop(self.routees[id])
    end
  end
end

-- RTR-15
function Router:serve(item)
  if item.change > 0 then self:add(item.change) else self:remove(-item.change) end
  if not item.slot then return end
  local answer = item.change == 0 and table.concat(self.members, " ") or #self.members
  self:settle(item.slot, { value = answer, from = "pool" })
  self:count(item, -1)
end

--- Whether there is something that the router may do next without being seen.
function Router:may_step()
  if self.phase == "restarting" then return self:is_childless() end
  if self.phase ~= "running" then return false end
  local item = self.inbox[1]
  local asks_strategy = self.options.strategy:find("^custom") and item and item.kind == "mail"
    and not item.is_broadcast and #self.members > 0
  return self.killed or item ~= nil and not asks_strategy
end

--- Does it.
function Router:step()
  if self.phase == "restarting" then
    self.phase = "running"
    self:fill()
    return self:expect("restarted", "pool")
  elseif self.killed then
    return self:fail()
  end
  local item = table.remove(self.inbox, 1)
  if item.kind == "kill" and not item.is_broadcast then
    self:fail()
  elseif item.kind == "pill" and not item.is_broadcast then
    self:begin_stop(true)
  elseif item.kind == "request" then
    self:serve(item)
  else
    self:route(item)
  end
end

-- What is done from outside -----------------------------------------------------------------------

-- STOP-1, TELL-5
function Router:tell(item)
  self:count(item, 1)
  if self.is_closed then return self:lose(item, "pool", "stopped") end
  table.insert(self.inbox, item)
end

function Router:tells(message, is_broadcast, sender)
  self:tell { kind = "mail", message = message, is_broadcast = is_broadcast, sender = sender }
end

function Router:asks(message, is_broadcast, ms)
  self.slots[message.n] = { requests = 0, due = self.now + ms }
  self:tell { kind = "mail", message = message, is_broadcast = is_broadcast, slot = message.n }
end

function Router:tells_routee(id, message, sender, is_taken)
  local item = { kind = "mail", message = message, sender = sender, is_direct = true }
  must(self:offer(id, item) == is_taken, "%s %s it", id, is_taken and "refuses" or "takes")
end

function Router:requests(change, number)
  if number then self.slots[number] = { requests = 0, due = self.now + 1000 } end
  self:tell { kind = "request", change = change, slot = number }
end

function Router:broadcasts_signal(kind) self:tell { kind = kind, is_broadcast = true } end

function Router:tells_router_kill() self:tell { kind = "kill" } end

function Router:kills_router() self.killed = self.phase == "running" end

function Router:stops_router()
  if self.is_closed then return end
  self:tell { kind = "pill" }
  self.is_closed = true
end

function Router:stops(id)
  local routee = self.routees[id]
  if routee and not routee.closed then self:offer(id, { kind = "pill" }) end
end

function Router:stops_hard(id)
  if self.routees[id] then self:stop_hard(self.routees[id]) end
end

function Router:kills(id)
  local routee = self.routees[id]
  if routee then routee.killed = not routee.ending end
end

-- What is seen of routees -------------------------------------------------------------------------

local function show(item)
  if not item then return "nothing" end
  return item.message and "#" .. item.message.n or item.kind
end

function Router:receives(id, number, sender)
  local routee = self.routees[id]
  must(routee and not routee.ending and not routee.hand and not routee.failed,
    "%s handles mail", id)
  local item = table.remove(routee.queue, 1)
  must(item and item.kind == "mail" and item.message.n == number, "%s is to get %s", id, show(item))
  must(item.slot or item.sender == sender, "the sender is to be %s", item.sender) -- RTR-4
  routee.hand = item
end

function Router:replies(id)
  local item = self.routees[id].hand
  if not item.slot then return end
  self:settle(item.slot, { value = ("%s:%d"):format(id, item.message.n), from = id })
end

function Router:stops_itself(id) self.routees[id].stops_itself = true end

function Router:ends(id)
  local routee = self.routees[id]
  local item = routee.hand
  must(item, "%s has nothing in hand", id)
  routee.hand = nil
  if not routee.stops_itself then return self:count(item, -1) end
  self:is_told(item, routee.name, "stopped")
  self:stop_hard(routee)
end

function Router:raises(id, directive)
  local routee = self.routees[id]
  must(routee.hand, "%s has nothing in hand", id)
  routee.failed, routee.hand, routee.directive = routee.hand, nil, directive
end

--- LIFE-9
function Router:closes(id)
  local routee = self.routees[id]
  must(routee.hand and (routee.ending or routee.restarting), "the handler of %s is closed", id)
  if routee.ending then
    self:is_told(routee.hand, routee.name, "stopped")
  else
    self:count(routee.hand, -1)
  end
  routee.hand = nil
end

-- SUP-4
function Router:apply(routee, directive)
  if directive == "escalate" then
    if self.phase == "running" and not self.options.is_group then return self:fail() end
    directive = "stop" -- SUP-10
  end
  if directive == "stop" then return self:stop_hard(routee) end
  self:count(routee.failed, -1)
  routee.failed = nil
  routee.restarting = directive == "restart"
end

-- What is seen of events --------------------------------------------------------------------------

-- Whether it is the one that was to come next.
function Router:was_expected(...)
  local expected = self.expected[1]
  if not expected then return false end
  for i = 1, math.max(select("#", ...), #expected) do
    if expected[i] ~= (select(i, ...)) then return false end
  end
  table.remove(self.expected, 1)
  return true
end

function Router:failed(id, directive)
  if self:was_expected("failed", id, directive) then return end
  local routee = self.routees[id]
  must(#self.expected == 0 and routee and not routee.ending, "%s fails", id)
  if routee.failed then
    must(directive == routee.directive, "%s is to %s", id, routee.directive)
  else
    local is_told = not routee.killed and not routee.hand and routee.queue[1]
      and routee.queue[1].kind == "kill"
    must(routee.killed or is_told, "%s is killed", id)
    must(directive == self.options.kill_directive, "%s is to %s", id, self.options.kill_directive)
    if is_told then table.remove(routee.queue, 1) end
    routee.killed = false
  end
  self:apply(routee, directive)
end

function Router:restarted(id)
  if id == "pool" then return must(self:was_expected("restarted", id), "the pool restarts") end
  must(#self.expected == 0 and self.routees[id].restarting and not self.routees[id].hand,
    "%s restarts", id)
  self.routees[id].restarting = false
end

-- Nothing is left of a queue but what makes no dead letters; or the first that does.
function Router:flush(queue, name, expected)
  while queue[1] and #self.expected == 0 do
    self:lose(table.remove(queue, 1), name, "stopped")
  end
  if expected then must(#self.expected > 0, "%s has lost it", name) end
end

-- STOP-1: it stops, if that is what comes next.
function Router:take_pill(routee)
  local is_next = not routee.ending and not routee.hand and not routee.failed and routee.queue[1]
    and routee.queue[1].kind == "pill"
  if not is_next then return end
  table.remove(routee.queue, 1)
  routee.ending = true
end

function Router:flush_of(name)
  if name == "pool" then
    must(self.phase == "stopping" and self:is_childless(), "the pool loses mail")
    return self.inbox
  end
  for _, routee in pairs(self.routees) do
    if routee.name == name then
      self:take_pill(routee)
      must(routee.ending and not routee.hand, "%s loses mail", routee.id)
      return routee.queue
    end
  end
  must(false, "%s loses mail", name)
end

function Router:letter(name, number, reason, sender)
  if #self.expected == 0 then self:flush(self:flush_of(name), name, true) end
  must(self:was_expected("letter", name, number, reason, sender), "it is lost so")
end

function Router:dropped(name, number, policy)
  must(self:was_expected("dropped", name, number, policy), "it is dropped so")
end

-- RTR-12
function Router:may_respawn()
  return self.options.on_routee_stop == "respawn" and self.phase == "running"
    and not self.is_closed and grants(self.respawns, self.now)
end

function Router:stopped(id)
  must(#self.expected == 0, "%s stops now", id)
  local name, routee = name_of(id), self.routees[id]
  self:flush(self:flush_of(name), name)
  must(#self.expected == 0, "%s has lost all its mail", id)
  if id == "pool" then
    self.phase = "stopped"
    return
  end
  must(routee, "%s stops", id)
  self.routees[id] = nil -- under "keep" it has its share of the mail all the same
  if not routee.is_removed and self:may_respawn() then self:spawn(name) end
end

-- What is seen of strategies ----------------------------------------------------------------------

local function text_of(ids) return ids and table.concat(ids, " ") or "nobody" end

-- RTR-10, RTR-11
function Router:routes(index, number, ids, picks)
  local item = self.inbox[1]
  must(self.phase == "running" and not self.killed and item and item.kind == "mail"
    and item.message.n == number and not item.is_broadcast, "it is routed")
  must(index == self.routed, "the index is to be %d", self.routed)
  must(text_of(ids) == text_of(self.members), "the routees are to be %s", text_of(self.members))
  table.remove(self.inbox, 1)
  self.routed = self.routed + 1
  local mirrored = self.options.strategy:match("^custom (.*)")
  if mirrored then
    local own = strategies[mirrored](self, item)
    must(text_of(own) == text_of(picks), "%s picks %s", mirrored, text_of(own))
  end
  self:follow(picks, item)
end

-- What is seen of asks, and of time ---------------------------------------------------------------

function Router:hears(number, value, err, path, from)
  local outcome = self.slots[number] and self.slots[number].outcome
  must(outcome, "#%d is answered", number)
  must(outcome.value == value and outcome.error == err and outcome.from == from
    and (not outcome.path or outcome.path == path), "#%d is to get %s", number,
    outcome.value or outcome.error)
  self.slots[number] = nil
end

--- Deadlines come before all else of their instant.  (ASK-6)
function Router:time(now)
  if now == self.now then return end
  self.now = now
  for number, slot in pairs(self.slots) do
    if now >= slot.due then self:settle(number, { error = "AskTimeoutError" }) end
  end
end

--- Nothing goes on any more, until time does.
function Router:rest()
  must(#self.expected == 0, "%s is over", table.concat(self.expected[1] or {}, " "))
  must(not self.inbox[1] and not self.killed and self.phase ~= "restarting", "the pool rests")
  for id, routee in pairs(self.routees) do
    must(routee.hand or not routee.queue[1] and not routee.ending, "%s rests", id)
    must(not routee.killed and not routee.restarting and not routee.failed, "%s rests", id)
  end
  must(self.phase ~= "stopping" or not self:is_childless(), "the pool has yet to stop")
  for number, slot in pairs(self.slots) do
    must(not slot.outcome, "#%d has yet to hear", number)
  end
end

--- Nothing is left, of messages neither.
function Router:is_over(queued, anchored)
  must(queued == 0 and anchored == 0, "all is over")
  must(self.phase == "stopped" and self:has_no_routees(), "all is over")
  must(next(self.slots) == nil, "#%s hears nothing", next(self.slots))
end

--- A router of a history, before anything has happened.
---@param options table
---@param went_to table<integer, string>  by the number of a message, who was seen to have it
function Router.new(options, went_to)
  local self = setmetatable({
    options = options,
    went_to = went_to,
    now = 0,
    phase = "running",
    is_closed = false,
    killed = false,
    inbox = {},
    members = {},
    routees = { outsider = { id = "outsider", name = "outsider", queue = {} } },
    generations = {},
    respawns = {},
    restarts = {},
    slots = {},
    expected = {},
  }, Router)
  for number = 1, options.is_group and options.size or 0 do
    local name = "routee-" .. number
    self.routees[name .. ".1"] = { id = name .. ".1", name = name, queue = {} }
  end
  self:fill()
  return self
end

-- Copies ------------------------------------------------------------------------------------------

-- Items and expected events are never changed, and may be shared.
local function copy(value, depth)
  if type(value) ~= "table" or depth == 0 then return value end
  local made = {}
  for key, field in pairs(value) do made[key] = copy(field, depth - 1) end
  return made
end

local SHARED = { options = true, went_to = true }

--- Another router to which the same has happened.
function Router:copy()
  local made = setmetatable({}, Router)
  for key, value in pairs(self) do
    made[key] = SHARED[key] and value
      or copy(value, key == "routees" and 3 or key == "slots" and 2 or 1)
  end
  return made
end

return Router
