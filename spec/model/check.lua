--- Looks whether all that happened in a system may have happened, and whether all that must have
--- happened did.
---
--- A log (see run.lua) is told to the model, entry by entry. Which actor comes next is the system's
--- affair; what that actor sees is the model's. So one model checks every schedule.
local Model = require "spec.model.rules"
require "spec.model.acts"
require "spec.model.unseen"
require "spec.model.seen"

-- The events about each path, but letters, in their order.
local function events_of(log)
  local events = {}
  for _, entry in ipairs(log) do
    local event = entry.what == "event" and entry[1]
    if event and event.kind ~= "dead_letter" then
      local list = events[event.path] or {}
      events[event.path] = list
      list[#list + 1] = event
    end
  end
  return events
end

local function new_model(options, log)
  return setmetatable({
    options = options,
    log = log,
    index = 1,               -- of the entry that is looked at
    coming = events_of(log), -- with `seen`, how many of each list
    now = 0,
    user = { id = 0, phase = "running", children = {}, spec = { hooks = {} }, is_guardian = true },
    actors = {},
    by_path = {},  -- the latest actor of each path
    deadlines = {},
    expected = {}, -- events that were published and not seen yet
    tasks = {},    -- what each waits for
    kept = {},     -- what reply refs that are kept stand for
    deciding = nil, -- who has failed, while its decider is to be asked
    terminating = false,
    ending = false, -- it has drained
    records = { warn = 0, error = 0 }, -- that its log is to have
  }, Model)
end

local function see(model, entry)
  model:time(entry.at)
  Model.must(not model.deciding or entry.what == "decides", "%s: its decider is not asked at once",
    model.deciding and model.deciding.id)
  model[entry.what](model, table.unpack(entry, 1, entry.n))
end

---@param options table  of the system that the log is of
---@param log table[]    `at`, `what`: a method of the model, and its arguments
---@return string? wrong  nil when nothing is
---@return integer? index  of the entry that may not be
return function(options, log)
  local model = new_model(options, log)
  for i, entry in ipairs(log) do
    model.index = i
    local ok, err = pcall(see, model, entry)
    if err == Model.UNDECIDED then return nil end
    if not ok then return err, i end
  end
end
