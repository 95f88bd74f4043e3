--- What there is to see of actors, as tables and as text.  (INS-1)
local check = require "troupe.check"
local core = require "troupe.core"
local text = require "troupe.text"

local inspect = {}

---@alias troupe.ActorState "starting" | "running" | "waiting" | "suspended" | "restarting"
---  | "stopping" | "stopped"

---@class troupe.Outline
---@field ref troupe.Ref
---@field path string      its text; made when it is asked for
---@field depth integer    below the root; of those in a tree
---@field state troupe.ActorState  "running" is idle as well; "waiting" is its handler
---@field behavior string?  "worker.lua:12", "Router.random(4)", "guardian"; nil once it has stopped
---@field queued integer    messages in its mailbox
---@field restarts integer  so far

---@class troupe.Inspection : troupe.Outline
---@field mailbox { capacity: integer?, overflow: string?, dropped: integer? }?  of a bounded one
---@field stashed integer
---@field timers integer
---@field children integer
---@field watches integer   whom it watches
---@field watchers integer  who watches it
---@field receive_timeout_ms number?
---@field became string?    where the function was defined that handles messages instead
---@field last_failure { reason: any, count: integer, at_ms: number }?  count: failures so far

--- Paths are made when they are asked for: those of a deep tree are long.
---@class troupe.Outline
local Outline = { __name = "troupe.Outline" }

function Outline:__index(key)
  if key == "path" then return tostring(self.ref) end
end

---@class troupe.Tree
---@field [integer] troupe.Outline
local Tree = { __name = "troupe.Tree" }

local function summary(outline)
  return ("%s, %d queued, %d restarts, %s"):format(outline.state, outline.queued,
    outline.restarts, text.escape(outline.behavior or "gone"))
end

local MAX_INDENT = 40

function Tree:__tostring()
  local lines = {}
  for i, outline in ipairs(self) do
    local indent = ("  "):rep(math.min(outline.depth, MAX_INDENT))
    local name = outline.depth == 0 and outline.path or outline.ref.name
    lines[i] = ("%s%s  %s"):format(indent, text.escape(name), summary(outline))
  end
  return table.concat(lines, "\n")
end

---@class troupe.Inspection
local Inspection = { __name = "troupe.Inspection", __index = Outline.__index }

local function mailbox(self)
  local box = self.mailbox
  if not box or not box.capacity then return "no bound" end
  return ("%d at most, %s, %d dropped"):format(box.capacity, box.overflow, box.dropped)
end

local function failure(self)
  local last = self.last_failure
  if not last then return "none" end
  return ("%s (%d in all, at %.14gms)"):format(check.show(last.reason), last.count, last.at_ms)
end

function Inspection:__tostring()
  local lines = {
    ("%s  %s"):format(text.escape(self.path), summary(self)),
    "  mailbox: " .. mailbox(self),
    ("  stashed: %d, timers: %d, children: %d, watches: %d, watchers: %d"):format(self.stashed,
      self.timers, self.children, self.watches, self.watchers),
    "  last failure: " .. failure(self),
  }
  if self.receive_timeout_ms then
    lines[#lines + 1] = ("  receive timeout: %.14gms"):format(self.receive_timeout_ms)
  end
  if self.became then lines[#lines + 1] = "  became: " .. text.escape(self.became) end
  return table.concat(lines, "\n")
end

---@param system troupe.System
---@return troupe.Tree
function inspect.tree(system)
  local tree = setmetatable(core.tree(system), Tree)
  for _, outline in ipairs(tree) do setmetatable(outline, Outline) end
  return tree
end

---@param ref troupe.Ref
---@return troupe.Inspection?  nil for a reply ref
function inspect.actor(ref)
  local seen = core.inspect(ref)
  return seen and setmetatable(seen, Inspection)
end

return inspect
