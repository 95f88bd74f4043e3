--- Dead letters that are kept: the last ones, to look at and to tell again.  (DL-5)
local check = require "troupe.check"
local core = require "troupe.core"
local pattern = require "troupe.pattern"
local selection = require "troupe.selection"

---@class troupe.DeadLetter
---@field message any
---@field sender troupe.Ref?
---@field recipient string  its path
---@field reason string     "stopped", ... (DL-1)
---@field time number       seconds since the epoch, of the system's clock

---@class troupe.DeadLetterFilter
---@field path? string | troupe.Path  of the recipient; may have wildcards, as in selections
---@field reason? string
---@field limit? integer  no more than so many, the latest; default: all

---@class troupe.DeadLetters
---@field private state troupe.SystemState
---@field private capacity integer
---@field private ring troupe.DeadLetter[]
---@field private latest integer  where it is in the ring
---@field private kept integer
---@field private telling boolean  subscribers are being told of one
local DeadLetters = { __name = "troupe.DeadLetters" }
DeadLetters.__index = DeadLetters

local function all(self)
  local list, before = {}, self.latest - self.kept
  for i = 1, self.kept do list[i] = self.ring[(before + i - 1) % self.capacity + 1] end
  return list
end

local function keep_only(self, list)
  self.ring, self.latest, self.kept = list, #list, #list
end

local filter_schema = {
  path = check.any(),
  reason = check.string(),
  limit = check.integer { min = 1 },
}

local function pick(self, where, filter, level)
  local values = check.options(where, filter, filter_schema, level + 1)
  local path, reason, limit = values.path, values.reason, values.limit
  local elements
  if path ~= nil then
    elements = pattern.elements(pattern.read(where, path, self.state.name, level + 1))
  end
  local list = {}
  for _, letter in ipairs(all(self)) do
    if (not reason or letter.reason == reason)
      and (not elements or pattern.matches(elements, letter.recipient)) then
      list[#list + 1] = letter
    end
  end
  return table.move(list, math.max(#list - (limit or #list), 0) + 1, #list, 1, {})
end

--- Those that are kept and pass the filter, the oldest first.
---@param filter? troupe.DeadLetterFilter
---@return troupe.DeadLetter[]  fresh tables
---@raise OptionsError at the caller's line
function DeadLetters:list(filter)
  local list = pick(self, "dead_letters:list", filter, 2)
  for i, letter in ipairs(list) do
    local copy = {}
    for key, value in next, letter do copy[key] = value end
    list[i] = copy
  end
  return list
end

--- How many are kept. O(1).
---@return integer
function DeadLetters:count() return self.kept end

--- Forgets all that are kept.
function DeadLetters:clear() keep_only(self, {}) end

-- Whether anybody took it; what nobody took is a dead letter again.
local function tell_again(self, letter)
  local system, taken = self.state.system, false
  local function lost(recipient, reason)
    core.dead_letter(system, recipient, letter.message, reason, letter.sender)
  end
  local found = selection.new(system, letter.recipient):resolve()
  if #found == 0 then lost(letter.recipient, "unresolved") end
  for _, ref in ipairs(found) do
    if ref:tell(letter.message, letter.sender) then
      taken = true
    else
      lost(tostring(ref), "mailbox-full")
    end
  end
  return taken
end

--- Takes those that pass the filter off the list, and tells each message again, with its sender, to
--- whoever is now at its recipient's path. What cannot be told is a dead letter again.
---@param filter? troupe.DeadLetterFilter
---@return integer told  how many found somebody
---@raise OptionsError at the caller's line, also from a subscriber to dead letters: it might never
---  end
function DeadLetters:replay(filter)
  local list = pick(self, "dead_letters:replay", filter, 2)
  if self.telling then
    check.fail("dead_letters:replay", "cannot be called by a subscriber to dead letters", 2)
  end
  local picked, left, told = {}, {}, 0
  for _, letter in ipairs(list) do picked[letter] = true end
  for _, letter in ipairs(all(self)) do
    if not picked[letter] then left[#left + 1] = letter end
  end
  keep_only(self, left)
  for _, letter in ipairs(list) do
    if tell_again(self, letter) then told = told + 1 end
  end
  return told
end

local dead_letters = {}

--- Keeps a dead letter, then has subscribers told of it.
---@param self troupe.DeadLetters
---@param event troupe.Event
---@param time number
---@param tell fun()
function dead_letters.keep(self, event, time, tell)
  self.latest = self.latest % self.capacity + 1
  self.kept = math.min(self.kept + 1, self.capacity)
  self.ring[self.latest] = {
    message = event.message,
    sender = event.sender,
    recipient = event.recipient,
    reason = event.reason,
    time = time,
  }
  local outer = self.telling
  self.telling = true
  tell()
  self.telling = outer
end

---@param state troupe.SystemState
---@param capacity integer  how many are kept
---@return troupe.DeadLetters
function dead_letters.new(state, capacity)
  return setmetatable({
    state = state, capacity = capacity, ring = {}, latest = 0, kept = 0, telling = false,
  }, DeadLetters)
end

return dead_letters
