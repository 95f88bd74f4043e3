--- What happened in a run, as lines of text. No addresses, and keys in order: the same run gives
--- the same lines.
local lines = {}

local show

local function show_fields(fields)
  local list = {}
  for key, value in pairs(fields) do
    local text = show(value)
    if text then list[#list + 1] = ("%s=%s"):format(key, text) end
  end
  table.sort(list)
  return "{" .. table.concat(list, " ") .. "}"
end

-- Nil for what is not to be shown: functions, and what stands in other lines.
function show(value)
  if type(value) == "function" then return nil end
  if type(value) ~= "table" or getmetatable(value) then return tostring(value) end
  if value.hooks then return "a spec" end
  return show_fields(value)
end

--- An entry of a log (see run.lua).
---@param entry table
---@return string
function lines.of_entry(entry)
  local words = { ("%g"):format(entry.at), entry.what }
  for i = 1, entry.n do words[#words + 1] = show(entry[i]) end
  return table.concat(words, " ")
end

--- A record of the log of a system.
---@param record troupe.LogRecord
---@return string
function lines.of_record(record)
  return ("%g %s %s %s %s"):format(record.time, record.level, record.path, record.message,
    show_fields(record.fields))
end

return lines
