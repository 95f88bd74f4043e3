--- What was measured, for people.
local goals = require "bench.goals"

local report = {}

local function first_line_of(command)
  local pipe = io.popen(command .. " 2>/dev/null")
  local line = pipe and pipe:read("l")
  if pipe then pipe:close() end
  return line
end

--- The machine.
function report.machine()
  local file = io.open("/proc/cpuinfo")
  local cpu = file and file:read("a"):match("model name%s*:%s*([^\n]+)")
  if file then file:close() end
  return {
    cpu = cpu or "unknown CPU",
    cores = tonumber(first_line_of("nproc")) or 0,
    system = first_line_of("uname -srm") or "unknown system",
  }
end

local function with_commas(n)
  return (("%.0f"):format(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^,", ""))
end

local function ns(value)
  if value < 1e5 then return ("%.1f"):format(value) end
  return (value < 1e8 and "%.0f" or "%.2e"):format(value)
end

local function ratio(value)
  if not value then return "" end
  return (value < 100 and "%.2f" or "%.0f"):format(value)
end

local function own_figures(more)
  local names, parts = {}, {}
  for name in pairs(more) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = more[name]
    parts[i] = name .. " " .. (value < 1000 and ("%.1f"):format(value) or with_commas(value))
  end
  return table.concat(parts, ", ")
end

local HEADS = "%-29s %-10s%11s%9s%9s%9s%9s%7s%6s"

--- Prints a table of at most 100 columns, and below an arm the figures of its own.
---@param rows bench.Row[]
function report.print(rows)
  print(HEADS:format("", "", "a second", "ns", "min", "max", "cpu ns", "/floor", "/ours"))
  for _, row in ipairs(rows) do
    local title = row.title
    for _, one in ipairs(row.arms) do
      print(HEADS:format(title, one.arm, with_commas(one.ops_per_second), ns(one.ns),
        ns(one.ns_min), ns(one.ns_max), ns(one.cpu_ns), ratio(one.times_floor),
        ratio(one.times_ours)))
      title = ""
      if one.more then print("      " .. own_figures(one.more)) end
    end
  end
end

local VERDICTS = "%-16s%-34s%-18s%-5s%s"

local function yes_or_no(met)
  if met == nil then return "" end
  return met and "yes" or "no"
end

--- Prints what was to be reached, what was, and whether that is enough.
---@param verdicts bench.Verdict[]
function report.print_goals(verdicts)
  print(VERDICTS:format("goals", "", "reached", "met", goals.marks.arm .. ", measured apart"))
  for _, verdict in ipairs(verdicts) do
    print((VERDICTS:format(verdict.workload, verdict.wanted, verdict.reached or "not measured",
      yes_or_no(verdict.met), verdict.mark or ""):gsub("%s+$", "")))
  end
end

return report
