--- Looks whether all that happened to a router and its routees may have happened, and whether all
--- that must have happened did.
---
--- When a router takes up its mail is the system's affair, and is not seen. So the model is asked
--- what would have come of it at any time: an entry of a log (see router_run.lua) is told to a
--- router that has taken up nothing since the entry before, to one that has taken up one message,
--- and so on. Those to which it could not have happened are dropped.
local Router = require "spec.model.routers"

-- Whether it makes a difference to a router that takes up its mail before this entry, or after.
local differs = {}

function differs.failed() return true end

differs.restarted, differs.stopped = differs.failed, differs.failed

-- Room in a mailbox with a bound.
function differs.receives(router) return router.options.mailbox ~= nil end

-- What counts for the smallest mailbox, and who is in the pool.
function differs.ends(router, id)
  return router.options.strategy:find("smallest_mailbox") ~= nil or router.routees[id].stops_itself
end

differs.raises, differs.closes = differs.ends, differs.ends

-- What cannot be seen before some mail is taken up.
local FOLLOWS = { receives = true, routes = true, letter = true, dropped = true, hears = true }

-- Whoever was seen to have a message that was routed to one.
local function recipients(log)
  local went_to = {}
  local function note(number, name)
    if name ~= "pool" then went_to[number] = went_to[number] or name end
  end
  for _, entry in ipairs(log) do
    if entry.what == "receives" then note(entry[2], entry[1]:match("^[^.]+")) end
    if entry.what == "letter" or entry.what == "dropped" then note(entry[2], entry[1]) end
    if entry.what == "hears" and entry[4] then note(entry[1], entry[4]) end
  end
  return went_to
end

local function add_routee(words, routee)
  for _, field in ipairs { "id", "closed", "ending", "restarting", "killed" } do
    words[#words + 1] = tostring(routee[field])
  end
  for _, item in ipairs(routee.queue) do
    words[#words + 1] = item.message and item.message.n or item.kind
  end
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- As text, what tells one router from another.
local function key_of(router)
  local words = { router.phase, router.next, #router.inbox, #router.members }
  for _, id in ipairs(sorted_keys(router.routees)) do add_routee(words, router.routees[id]) end
  for _, number in ipairs(sorted_keys(router.slots)) do
    local outcome = router.slots[number].outcome
    words[#words + 1] = outcome and (outcome.value or outcome.error) or "open"
    words[#words + 1] = outcome and outcome.path
  end
  for _, event in ipairs(router.expected) do words[#words + 1] = table.concat(event, " ") end
  return table.concat(words, " ")
end

local function see(router, entry)
  router:time(entry.at)
  router[entry.what](router, table.unpack(entry, 1, entry.n))
end

-- A router to which the same has happened, and that has taken up one message more; nil and why when
-- it cannot.
local function step(router, now)
  local ahead = router:copy()
  ahead:time(now)
  local ok, err = pcall(ahead.step, ahead)
  if err == Router.UNDECIDED then error(err, 0) end
  return ok and ahead or nil, err
end

-- The routers that there may be after the entry, where it may have happened to this one; or why
-- there are none. No more is taken up than must be, where it makes no difference.
local function after(router, entry)
  local takes_all = differs[entry.what] and differs[entry.what](router, entry[1])
  local may_be_ahead = takes_all or FOLLOWS[entry.what]
  local list, wrong = {}, nil
  while router do
    local ahead = may_be_ahead and router:may_step() and step(router, entry.at) or nil
    local ok, err = pcall(see, router, entry)
    if ok then list[#list + 1] = router else wrong = err end
    if ok and not takes_all then break end
    router = ahead
  end
  return list, wrong
end

-- Adds those that are not in the list yet.
local function add_all(list, routers, seen)
  for _, router in ipairs(routers) do
    local key = key_of(router)
    if not seen[key] then list[#list + 1] = router end
    seen[key] = true
  end
end

local function take_up_all(router, now)
  router:time(now)
  while router:may_step() do router:step() end
end

-- The routers that there may be after the entry.
local function after_all(routers, entry)
  if #routers == 1 then return after(routers[1], entry) end
  local list, seen, wrong = {}, {}, nil
  for _, router in ipairs(routers) do
    local some, err = after(router, entry)
    add_all(list, some, seen)
    wrong = err or wrong
  end
  return list, wrong
end

local function check(options, log)
  local routers = { Router.new(options, recipients(log)) }
  for index, entry in ipairs(log) do
    if entry.what == "rest" then
      for _, router in ipairs(routers) do take_up_all(router, entry.at) end
    end
    local left, wrong = after_all(routers, entry)
    if #left == 0 then return wrong, index end
    routers = left
  end
end

---@param options table  of the router that the log is of
---@param log table[]    `at`, `what`: a method of the model, and its arguments
---@return string? wrong  nil when nothing is
---@return integer? index  of the entry that may not be
return function(options, log)
  local ok, wrong, index = pcall(check, options, log)
  if ok then return wrong, index end
  if wrong ~= Router.UNDECIDED then error(wrong, 0) end
end
