--- Metrics as they are shown, taken apart.
local M = {}

--- The samples of a text, by name and labels as they stand in it: numbers.
---@param text string
---@return table<string, number | string>
function M.read(text)
  local samples = {}
  for line in text:gmatch("[^\n]+") do
    local series, value = line:match("^([^#].*) (%S+)$")
    if series then
      assert(samples[series] == nil, "twice: " .. series)
      samples[series] = tonumber(value) or value
    end
  end
  return samples
end

--- The lines of one metric: its help and type, and the samples of that very name.
---@param text string
---@param name string
---@return string[]
function M.lines(text, name)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    if line:find("^" .. name .. "[ {]") or line:find("^# %u+ " .. name .. " ") then
      lines[#lines + 1] = line
    end
  end
  return lines
end

return M
