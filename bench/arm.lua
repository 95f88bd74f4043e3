--- What arms in Lua have in common: how they measure, and what they print. An arm is a program that
--- runs one workload once: `ARM WORKLOAD SIZE`. See README.md.
local clock = require "troupe_bench_floor".clock

local arm = {}

local NO_SUCH_WORKLOAD = 3
local WARM_UP = 1000 -- operations

--- Seconds of wall clock, from some time on.
arm.clock = clock

--- Bytes of this process that are in memory.
function arm.resident()
  local file <close> = assert(io.open("/proc/self/statm"))
  local _, pages = file:read("n", "n")
  return pages * 4096
end

---@class bench.Workload
---@field prepare fun(n: integer, opened: any): (fun(): table?), (fun(): integer)  what is measured,
---  which may give more figures by name; and how many of the n operations were done
---@field step integer   sizes are multiples of it
---@field cold boolean?  not warmed up, because memory is measured

--- A row of an arm's table.
---@return bench.Workload
function arm.workload(step, prepare, cold)
  return { step = step, prepare = prepare, cold = cold }
end

local function measure(workload, n, open)
  local opened <close> = open and open()
  local run, handled = workload.prepare(n, opened)
  collectgarbage()
  local wall, cpu = clock(), os.clock()
  local figures = run() or {}
  figures.seconds, figures.cpu = clock() - wall, os.clock() - cpu
  return handled(), figures
end

local function line(figures)
  local names, parts = {}, {}
  for name in pairs(figures) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ("%s=%.9f"):format(name, figures[name]) end
  return table.concat(parts, " ")
end

--- Does what the command line says.
---@param workloads table<string, bench.Workload>
---@param open? fun(): any  makes what each run is given, and closes when it is over
function arm.main(workloads, open)
  local workload, size = workloads[arg[1]], math.tointeger(tonumber(arg[2]))
  if not workload then
    io.stderr:write(("%s: there is no workload %s\n"):format(arg[0], arg[1]))
    os.exit(NO_SUCH_WORKLOAD, true)
  end
  assert(size and size > 0 and size % workload.step == 0,
    "the size must be a multiple of " .. workload.step)
  if not workload.cold then
    measure(workload, math.min(size, math.max(WARM_UP, workload.step)), open)
  end
  local handled, figures = measure(workload, size, open)
  print(("handled=%d %s"):format(handled, line(figures)))
end

return arm
