--- Runs random histories, of actors and of routers, and looks whether all went as the models say.
---
---     make explore                      10,000 histories of each, of the seeds from 1 on
---     make explore N=1000000 SEED=77
---
--- Exit code: 0 all went as the models say; 1 one did not: its seed, and all that happened, are
--- printed; 2 wrong usage.
local lines = require "spec.model.lines"

local models = {
  {
    make_history = require "spec.model.history",
    run = require "spec.model.run",
    check = require "spec.model.check",
  },
  {
    make_history = require "spec.model.router_history",
    run = require "spec.model.router_run",
    check = require "spec.model.router_check",
  },
}

local PROGRESS = 10000

local count, first = math.tointeger(tonumber(arg[1])), math.tointeger(tonumber(arg[2]))
if not count or count < 1 or not first or arg[3] then
  io.stderr:write("explore: usage: make explore [N=how many] [SEED=the first seed]\n")
  os.exit(2)
end

local function fail(seed, what)
  print(("explore: seed %d: %s"):format(seed, what))
  print(("run it again with: make explore SEED=%d N=1"):format(seed))
  os.exit(1, true)
end

-- All that happened, with a mark at the entry that may not be.
local function print_log(log, at)
  for i, entry in ipairs(log) do print((i == at and "> " or "  ") .. lines.of_entry(entry)) end
end

local function try(model, seed)
  local history = model.make_history(seed)
  local ok, log = pcall(model.run, history)
  if not ok then fail(seed, tostring(log)) end
  local wrong, at = model.check(history.options, log)
  if wrong then
    print_log(log, at)
    fail(seed, wrong)
  end
end

for i = 1, count do
  for _, model in ipairs(models) do try(model, first + i - 1) end
  if i % PROGRESS == 0 then
    print(("%d histories of each, %.0f s"):format(i, os.clock()))
    io.flush()
  end
end
print(("explore: %d histories of actors, and of routers, from seed %d on went as the models say")
  :format(count, first))
