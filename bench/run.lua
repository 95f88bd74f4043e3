--- Measures what messages cost, in nanoseconds of CPU time and as a multiple of the floor.
--
--     make bench
--     make bench ARGS="[--quick] [FILE]"
--
-- Every round runs every workload once, each in a system of its own and after a full collection,
-- so that what disturbs the machine disturbs all rows alike. Shown are medians over the rounds, and
-- the multiple of the floor is taken within each round. FILE gets the same figures as JSON. With
-- --quick the rounds are too short for their figures to mean anything.
--
-- Exit code: 0 done; 1 a workload did not do all it was to do; 2 wrong usage, or not built.

local ROUNDS, QUICK_ROUNDS = 7, 3
local QUICKER = 200

local function quit(exit_code, message)
  io.stderr:write(("bench: %s\n"):format(message))
  os.exit(exit_code, true)
end

local function arguments()
  local quick, path = false, nil
  for _, word in ipairs(arg) do
    if word == "--quick" then
      quick = true
    elseif word:sub(1, 1) ~= "-" and not path then
      path = word
    else
      quit(2, "usage: lua5.4 bench/run.lua [--quick] [FILE]")
    end
  end
  return quick, path
end

local function need(module)
  local ok, result = pcall(require, module)
  if not ok then quit(2, "run `make bench`, which builds what is missing here: " .. result) end
  return result
end

local quick, path = arguments()
local file, open_error
if path then
  file, open_error = io.open(path, "w")
  if not file then quit(2, open_error) end
end

local troupe, floor = need("troupe"), need("troupe_bench_floor")
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local report, workloads = require "report", require "workloads"

local function quick_size(workload)
  return math.max(1, workload.size // QUICKER // workload.step) * workload.step
end

--- Seconds that n operations take.
local function measure(workload, n)
  local system <close> = troupe.system("bench", { log = function() end })
  local run, verify = workload.prepare(system, n)
  collectgarbage()
  local began = os.clock()
  run()
  local seconds = os.clock() - began
  verify()
  return seconds
end

local function measure_or_quit(workload, n)
  local ok, result = pcall(measure, workload, n)
  if not ok then quit(1, ("%s: %s"):format(workload.name, result)) end
  return result
end

local rounds = quick and QUICK_ROUNDS or ROUNDS
local rows = {}
for i, workload in ipairs(workloads) do
  local small = quick_size(workload)
  measure_or_quit(workload, small) -- to warm up
  rows[i] = { workload = workload, operations = quick and small or workload.size, ns = {} }
end
for round = 1, rounds do
  for _, row in ipairs(rows) do
    local seconds = measure_or_quit(row.workload, row.operations)
    row.ns[round] = seconds * 1e9 / (row.operations * row.workload.messages)
  end
end

local machine, figures = report.machine(floor.lua), report.figures(rows)
local warning = quick and ", too quick to compare" or ""
print(("%s; medians of %d rounds%s\n"):format(machine, rounds, warning))
report.print(figures)
if file then assert(file:write(report.json(machine, rounds, figures))) end
