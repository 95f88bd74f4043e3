--- Metrics: what a system counts, and counters, gauges and histograms of your own, as text for
--- Prometheus.  (MET-1 .. MET-3)
---
---     local orders = system.metrics:counter("orders_total", "Orders taken.", { "channel" })
---     orders:inc(1, { channel = "web" })
---     io.write(system.metrics:render())
local check = require "troupe.check"
local core = require "troupe.core"
local text = require "troupe.text"

-- Text --------------------------------------------------------------------------------------------

local REPLACEMENT = "\u{FFFD}"

-- A byte that is no UTF-8, or a zero, would make Prometheus refuse all that there is.
local function clean(s)
  return (text.repair(s, function() return REPLACEMENT end):gsub("\0", REPLACEMENT))
end

local function escape_help(s) return (s:gsub("[\\\n]", { ["\\"] = "\\\\", ["\n"] = "\\n" })) end

local function escape_label(s) return (escape_help(s):gsub('"', '\\"')) end

-- A number as text from which Prometheus reads that very number.
local function number(value)
  if value ~= value then return "NaN" end
  if value == math.huge then return "+Inf" end
  if value == -math.huge then return "-Inf" end
  local integer = math.tointeger(value)
  if integer then return ("%d"):format(integer) end
  for digits = 15, 17 do
    local shown = ("%." .. digits .. "g"):format(value)
    if tonumber(shown) == value then return (shown:gsub(",", ".")) end -- a locale may put a comma
  end
end

local function label(name, value) return ('%s="%s"'):format(name, escape_label(value)) end

local function write_sample(lines, name, labels, value)
  if labels ~= "" then labels = "{" .. labels .. "}" end
  lines[#lines + 1] = ("%s%s %s"):format(name, labels, number(value))
end

local function write_histogram(lines, name, labels, histogram)
  local before = labels == "" and "" or labels .. ","
  local total = 0
  for i, count in ipairs(histogram.counts) do
    total = total + count
    local bound = number(histogram.bounds[i] or math.huge)
    write_sample(lines, name .. "_bucket", before .. label("le", bound), total)
  end
  write_sample(lines, name .. "_sum", labels, histogram.sum)
  write_sample(lines, name .. "_count", labels, total)
end

-- A family: name, kind, help, and `series`: values by the text of their labels.
local function write_family(lines, family)
  lines[#lines + 1] = ("# HELP %s %s"):format(family.name, escape_help(family.help))
  lines[#lines + 1] = ("# TYPE %s %s"):format(family.name, family.kind)
  local write = family.kind == "histogram" and write_histogram or write_sample
  local all = {}
  for labels in next, family.series do all[#all + 1] = labels end
  table.sort(all)
  for _, labels in ipairs(all) do write(lines, family.name, labels, family.series[labels]) end
end

-- What the system counts --------------------------------------------------------------------------

-- `field` is the name that the core has for it; `label` that of its only label, if it has one.
local built_in = {
  { name = "actor_created_total", kind = "counter", field = "created",
    help = "Actors that were spawned." },
  { name = "actor_restarted_total", kind = "counter", field = "restarted",
    help = "Restarts of actors." },
  { name = "actor_terminated_total", kind = "counter", field = "terminated",
    help = "Actors that have stopped." },
  { name = "actor_messages_delivered_total", kind = "counter", field = "delivered",
    help = "Messages handed to handlers." },
  { name = "actor_message_handler_seconds", kind = "histogram", field = "handled",
    help = "From the beginning of a handler to its end, waits included." },
  { name = "actor_mailbox_depth", kind = "gauge", field = "queued",
    help = "Messages that wait in mailboxes." },
  { name = "actor_mailbox_dropped_total", kind = "counter", field = "dropped", label = "reason",
    help = "Messages that full mailboxes have shed or refused, by policy." },
  { name = "dead_letters_total", kind = "counter", field = "dead_letters", label = "reason",
    help = "Dead letters, by reason." },
  { name = "router_routed_total", kind = "counter", field = "routed", label = "strategy",
    help = "Messages that came to routers, by what made the router." },
  { name = "router_scatter_gather_resolved_total", kind = "counter", field = "outcomes",
    label = "outcome", help = "Scatters that have ended, by outcome." },
  { name = "router_scatter_gather_latency_seconds", kind = "histogram", field = "gathered",
    help = "From a scatter to its answer." },
  { name = "router_hedges_total", kind = "counter", field = "hedges", label = "outcome",
    help = "Hedged requests: extra ones sent, those that won, those refused by the cap." },
}

local RESERVED = { "actor_", "dead_letters_", "router_", "troupe_" }

local function series_of(family, value)
  if not family.label then return { [""] = value } end
  local series = {}
  for label_value, count in next, value do series[label(family.label, label_value)] = count end
  return series
end

local function write_built_in(lines, counts)
  for _, family in ipairs(built_in) do
    write_family(lines, {
      name = family.name,
      kind = family.kind,
      help = family.help,
      series = series_of(family, counts[family.field]),
    })
  end
end

-- Series of your own ------------------------------------------------------------------------------

local MAX_SERIES = 10000

---@class troupe.Metric  a family of series, one for each set of label values
---@field private name string
---@field private kind "counter" | "gauge" | "histogram"
---@field private help string
---@field private labels string[]     their names, sorted
---@field private bounds number[]?    of a histogram
---@field private series table<string, any>  by the text of their labels
---@field private size integer        how many there are, the shared one not counted
---@field private folds boolean       new ones share one
---@field private log troupe.Log

local label_value = {
  expected = "a string, a number or a boolean, and no path",
  test = function(value)
    local kind = type(value)
    if kind == "number" then return true, number(value) end
    if kind == "boolean" then return true, tostring(value) end
    return kind == "string" and not value:find("^troupe://"), value
  end,
}

local labels_rule = check.table()

local function is_label_of(self, name)
  for _, own in ipairs(self.labels) do
    if own == name then return true end
  end
  return false
end

-- The text of what a call was given as labels.
local function read_labels(self, where, given, level)
  if given == nil and #self.labels == 0 then return "" end
  given = check.argument(where, "labels", given, labels_rule, level + 1)
  for name in next, given do
    if not is_label_of(self, name) then
      check.fail(where, ("%s has no label %s"):format(self.name, check.show(name)), level + 1)
    end
  end
  local parts = {}
  for i, name in ipairs(self.labels) do
    local value = rawget(given, name)
    value = check.argument(where, "the label " .. name, value, label_value, level + 1)
    parts[i] = label(name, clean(value))
  end
  return table.concat(parts, ",")
end

local function others(self)
  local parts = {}
  for i, name in ipairs(self.labels) do parts[i] = label(name, "other") end
  return table.concat(parts, ",")
end

local function new_value(bounds)
  if not bounds then return 0.0 end
  local counts = {}
  for i = 1, #bounds + 1 do counts[i] = 0 end
  return { bounds = bounds, counts = counts, sum = 0.0 }
end

local function warn_of_folding(self)
  self.folds = true
  self.log:write("warn", self.log.path,
    ("the metric %s has more than %d series: what is new counts as \"other\""):format(self.name,
      MAX_SERIES))
end

-- Where the series with these labels is kept. Once there are many, new ones share one (MET-3).
local function place(self, labels)
  if self.series[labels] then return labels end
  if self.size < MAX_SERIES then
    self.size = self.size + 1
  else
    if not self.folds then warn_of_folding(self) end
    labels = others(self)
    if self.series[labels] then return labels end
  end
  self.series[labels] = new_value(self.bounds)
  return labels
end

local function add(self, amount, labels)
  labels = place(self, labels)
  self.series[labels] = self.series[labels] + amount
end

local whole_rule = check.number { min = 0, default = 1 }
local amount_rule = check.number { default = 1 }
local observed_rule = check.number()
local number_rule = {
  expected = "a number",
  test = function(value) return type(value) == "number", value end,
}

---@class troupe.Counter : troupe.Metric  only goes up
local Counter = { __name = "troupe.Counter" }
Counter.__index = Counter

--- Adds to it. An `n` of 0 has the series shown before anything is counted.  (MET-2)
---@param n? number  finite, at least 0; default 1
---@param labels? table<string, string | number | boolean>  a value for each of its labels
---@raise OptionsError at the caller's line
function Counter:inc(n, labels)
  n = check.argument("counter:inc", "n", n, whole_rule, 2)
  add(self, n, read_labels(self, "counter:inc", labels, 2))
end

---@class troupe.Gauge : troupe.Metric  goes up and down
local Gauge = { __name = "troupe.Gauge" }
Gauge.__index = Gauge

--- Sets it.  (MET-2)
---@param value number  any: NaN and the infinities too
---@param labels? table<string, string | number | boolean>  a value for each of its labels
---@raise OptionsError at the caller's line
function Gauge:set(value, labels)
  value = check.argument("gauge:set", "value", value, number_rule, 2)
  labels = place(self, read_labels(self, "gauge:set", labels, 2))
  self.series[labels] = value + 0.0
end

--- Adds to it.  (MET-2)
---@param n? number  finite; default 1
---@param labels? table<string, string | number | boolean>  a value for each of its labels
---@raise OptionsError at the caller's line
function Gauge:inc(n, labels)
  n = check.argument("gauge:inc", "n", n, amount_rule, 2)
  add(self, n, read_labels(self, "gauge:inc", labels, 2))
end

--- Takes from it.  (MET-2)
---@param n? number  finite; default 1
---@param labels? table<string, string | number | boolean>  a value for each of its labels
---@raise OptionsError at the caller's line
function Gauge:dec(n, labels)
  n = check.argument("gauge:dec", "n", n, amount_rule, 2)
  add(self, 0.0 - n, read_labels(self, "gauge:dec", labels, 2))
end

---@class troupe.Histogram : troupe.Metric  how many values are up to each bound
local Histogram = { __name = "troupe.Histogram" }
Histogram.__index = Histogram

--- Counts a value.  (MET-2)
---@param value number  finite
---@param labels? table<string, string | number | boolean>  a value for each of its labels
---@raise OptionsError at the caller's line
function Histogram:observe(value, labels)
  value = check.argument("histogram:observe", "value", value, observed_rule, 2)
  labels = place(self, read_labels(self, "histogram:observe", labels, 2))
  local histogram, bounds, i = self.series[labels], self.bounds, 1
  while bounds[i] and value > bounds[i] do i = i + 1 end
  histogram.counts[i] = histogram.counts[i] + 1
  histogram.sum = histogram.sum + value
end

-- Making them -------------------------------------------------------------------------------------

local classes = { counter = Counter, gauge = Gauge, histogram = Histogram }

local name_rule = {
  expected = "letters, digits and _, and not begin with a digit",
  test = function(value)
    return type(value) == "string" and value:find("^[A-Za-z_][A-Za-z0-9_]*$") ~= nil, value
  end,
}

local help_rule = {
  expected = "a text, in UTF-8 and not empty",
  test = function(value)
    return type(value) == "string" and value ~= "" and clean(value) == value, value
  end,
}

-- Why a name will not do for a metric of that kind.
local function name_fault(name, kind)
  for _, prefix in ipairs(RESERVED) do
    if name:find("^" .. prefix) then
      return ("must not begin with %s, which is for what the system counts"):format(prefix)
    end
  end
  if (kind == "counter") ~= (name:find("_total$") ~= nil) then
    return kind == "counter" and "must end in _total" or "must not end in _total: it is no counter"
  end
  for _, suffix in ipairs { "_bucket", "_count", "_sum" } do
    if name:find(suffix .. "$") then
      return ("must not end in %s, which is for a part of a histogram"):format(suffix)
    end
  end
end

local function check_name(where, name, kind, level)
  check.argument(where, "the name", name, name_rule, level + 1)
  local fault = name_fault(name, kind)
  if fault then check.fail(where, ("the name %s %s"):format(check.show(name), fault), level + 1) end
end

local function label_fault(name, seen)
  if not name_rule.test(name) then return "must be " .. name_rule.expected end
  if name:find("^__") then return "must not begin with __" end
  if name == "le" or name == "quantile" then return "has a meaning of its own" end
  if seen[name] then return "is given twice" end
end

-- A list of its own, sorted: their order means nothing.
local function read_label_names(where, given, level)
  if given == nil then return {} end
  check.argument(where, "labels", given, labels_rule, level + 1)
  local names, seen = {}, {}
  for key, name in next, given do
    local fault = math.type(key) ~= "integer" and "must be in a list" or label_fault(name, seen)
    if fault then
      check.fail(where, ("the label %s %s"):format(check.show(name), fault), level + 1)
    end
    seen[name] = true
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local bound_rule = check.number()

local DEFAULT_BOUNDS = {
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}

local function read_bounds(where, given, level)
  local bounds, last = {}, -math.huge
  for i = 1, #given do
    local bound = check.argument(where, ("buckets[%d]"):format(i), given[i], bound_rule, level + 1)
    if bound <= last then check.fail(where, "buckets must go up", level + 1) end
    bounds[i], last = bound, bound
  end
  if #bounds == 0 then check.fail(where, "buckets must not be empty", level + 1) end
  return bounds
end

local function same_list(a, b)
  a, b = a or {}, b or {}
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local function same(a, b)
  return a.kind == b.kind and a.help == b.help and same_list(a.labels, b.labels)
    and same_list(a.bounds, b.bounds)
end

---@class troupe.Metrics  of a system: what it counts, and counters, gauges and histograms of your
---  own (MET-1, MET-2)
---@field private state troupe.SystemState
---@field private families table<string, troupe.Metric>  your own, by name
local Metrics = { __name = "troupe.Metrics" }
Metrics.__index = Metrics

-- What has been made under that name before, if it is the same, or a new one.
local function make(self, where, metric, level)
  local there = self.families[metric.name]
  if there and not same(there, metric) then
    check.fail(where, ("%s is there already, as another kind or with another help, labels or "
      .. "buckets"):format(metric.name), level + 1)
  end
  if there then return there end
  metric.series, metric.size, metric.folds, metric.log = {}, 0, false, self.state.log
  self.families[metric.name] = setmetatable(metric, classes[metric.kind])
  if #metric.labels == 0 then place(metric, "") end
  return metric
end

local function make_plain(self, kind, name, help, labels)
  local where = "metrics:" .. kind
  check_name(where, name, kind, 3)
  check.argument(where, "help", help, help_rule, 3)
  labels = read_label_names(where, labels, 3)
  local metric = make(self, where, { kind = kind, name = name, help = help, labels = labels }, 3)
  return metric
end

--- A counter: the one of that name, or a new one.  (MET-2)
---@param name string  must end in "_total"
---@param help string  what it counts
---@param labels? string[]  names of labels; each call gives their values
---@return troupe.Counter
---@raise OptionsError at the caller's line
function Metrics:counter(name, help, labels)
  local metric = make_plain(self, "counter", name, help, labels)
  return metric
end

--- A gauge: the one of that name, or a new one.  (MET-2)
---@param name string
---@param help string  what it shows
---@param labels? string[]  names of labels; each call gives their values
---@return troupe.Gauge
---@raise OptionsError at the caller's line
function Metrics:gauge(name, help, labels)
  local metric = make_plain(self, "gauge", name, help, labels)
  return metric
end

local histogram_schema = {
  buckets = check.table { default = DEFAULT_BOUNDS },
  labels = check.table(),
}

--- A histogram: the one of that name, or a new one.  (MET-2)
---@param name string
---@param help string  what it measures
---@param options? { buckets: number[]?, labels: string[]? }  buckets: their upper bounds, rising;
---  default: from 0.0001 to 10, for seconds
---@return troupe.Histogram
---@raise OptionsError at the caller's line
function Metrics:histogram(name, help, options)
  local where = "metrics:histogram"
  check_name(where, name, "histogram", 2)
  check.argument(where, "help", help, help_rule, 2)
  local values = check.options(where, options, histogram_schema, 2)
  local metric = make(self, where, {
    kind = "histogram",
    name = name,
    help = help,
    labels = read_label_names(where, values.labels, 2),
    bounds = read_bounds(where, values.buckets, 2),
  }, 2)
  return metric
end

--- All metrics as text, for Prometheus: what the system counts, then your own by name.  (MET-1)
---@return string  text format 0.0.4
function Metrics:render()
  local lines, names = {}, {}
  write_built_in(lines, core.metrics(self.state.system))
  for name in next, self.families do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do write_family(lines, self.families[name]) end
  lines[#lines + 1] = ""
  return table.concat(lines, "\n")
end

local metrics = {}

---@param state troupe.SystemState
---@return troupe.Metrics
function metrics.new(state) return setmetatable({ state = state, families = {} }, Metrics) end

return metrics
