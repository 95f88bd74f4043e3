--- Runs arms, each in a process of its own, and reads what they print.
local measure = {}

local TIMEOUT_SECONDS = 120
local NOT_THERE, TIMED_OUT = 3, 124

--- Runs a command, which is given nothing to read; gives what it printed, errors included, and its
--- exit code.
local function run(command)
  local pipe = assert(io.popen(("{ %s; } 2>&1 </dev/null"):format(command)))
  local output = pipe:read("a")
  local _, how, code = pipe:close()
  return output, how == "signal" and 128 + code or code
end

local function last_line(text) return text:match("([^\n]*)\n*$") end

--- Whether an arm can be measured.
---@param arm bench.Arm
---@return string? version  nil when it is missing
---@return string? why
function measure.look_for(arm)
  local version, code = run(arm.version)
  if code ~= 0 then return nil, "is missing" end
  if arm.build then
    local output, failure = run(arm.build)
    if failure ~= 0 then return nil, ("was not built (%s)"):format(last_line(output)) end
  end
  return (version:gsub("\n$", ""):gsub("\n.*", ""))
end

local function figures(line)
  local sample = {}
  for name, value in line:gmatch("([%w_]+)=(%S+)") do sample[name] = tonumber(value) end
  return sample
end

local function failure(output, code)
  if code == TIMED_OUT then return ("took more than %d seconds"):format(TIMEOUT_SECONDS) end
  return ("exit code %d: %s"):format(code, last_line(output))
end

--- Runs a workload once.
---@param arm bench.Arm
---@param workload bench.WorkloadRow
---@param size integer
---@return table<string, number>? sample  nil when it failed, or when the arm has no such workload
---@return string? failure  what went wrong
function measure.once(arm, workload, size)
  local output, code = run(("timeout -k 5 %d %s %s %d"):format(TIMEOUT_SECONDS, arm.command,
    workload.program, size))
  if code == NOT_THERE then return nil end
  if code ~= 0 then return nil, failure(output, code) end
  local line = ("\n" .. output):match("\n(handled=[^\n]*)")
  local sample = figures(line or "")
  if not (sample.handled and sample.seconds and sample.cpu) then
    return nil, "did not say what it measured: " .. last_line(output)
  end
  if sample.handled ~= size then
    return nil, ("handled %.0f instead of %.0f"):format(sample.handled, size)
  end
  return sample
end

return measure
