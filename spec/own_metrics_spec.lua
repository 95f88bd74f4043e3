--- Counters, gauges and histograms of the user's own, and how they are shown to Prometheus.
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"
local read_samples = require "spec.support.samples"

local function ignore() end

describe("metrics of your own", function()
  local each_kit = new_kit.each(before_each, after_each)

  --- The test's kit, whose system counts.
  local function kit(options)
    options = options or {}
    options.metrics = true
    return each_kit(options)
  end

  local function metrics() return kit().system.metrics end
  local function samples() return read_samples.read(metrics():render()) end

  --- The samples of that name, as they are shown.
  local function shown(name)
    local lines = {}
    for line in metrics():render():gmatch("[^\n]+") do
      if line:find("^" .. name .. "[ {]") then lines[#lines + 1] = line end
    end
    return lines
  end

  it("MET-2 a counter counts up, from a 0 that is shown", function()
    local jobs = metrics():counter("jobs_total", "Jobs done.")
    assert.are.same({
      "# HELP jobs_total Jobs done.",
      "# TYPE jobs_total counter",
      "jobs_total 0",
    }, read_samples.lines(metrics():render(), "jobs_total"))

    jobs:inc()
    jobs:inc(2.5)
    jobs:inc(0)

    assert.are.same({ "jobs_total 3.5" }, shown("jobs_total"))
  end)

  it("MET-2 a gauge goes up and down", function()
    local open = metrics():gauge("open_files", "Open files.")
    assert.are.same({
      "# HELP open_files Open files.",
      "# TYPE open_files gauge",
      "open_files 0",
    }, read_samples.lines(metrics():render(), "open_files"))

    open:set(10)
    open:inc()
    open:inc(5)
    open:dec()
    open:dec(20)
    assert.are.same({ "open_files -5" }, shown("open_files"))

    open:set(0.25)
    assert.are.same({ "open_files 0.25" }, shown("open_files"))
  end)

  it("MET-2 a histogram counts up to each bound, all below it included", function()
    local size = metrics():histogram("request_bytes", "Sizes.", { buckets = { -1, 0, 10, 2.5e3 } })
    local function parts()
      local lines = {}
      for line in metrics():render():gmatch("[^\n]+") do
        if line:find("request_bytes", 1, true) then lines[#lines + 1] = line end
      end
      return lines
    end
    assert.are.same({
      "# HELP request_bytes Sizes.",
      "# TYPE request_bytes histogram",
      'request_bytes_bucket{le="-1"} 0',
      'request_bytes_bucket{le="0"} 0',
      'request_bytes_bucket{le="10"} 0',
      'request_bytes_bucket{le="2500"} 0',
      'request_bytes_bucket{le="+Inf"} 0',
      "request_bytes_sum 0",
      "request_bytes_count 0",
    }, parts())

    for _, value in ipairs { -5, -0.5, 10, 10.5, 2500, 1e6 } do size:observe(value) end

    assert.are.same({
      "# HELP request_bytes Sizes.",
      "# TYPE request_bytes histogram",
      'request_bytes_bucket{le="-1"} 1',
      'request_bytes_bucket{le="0"} 2',
      'request_bytes_bucket{le="10"} 3',
      'request_bytes_bucket{le="2500"} 5',
      'request_bytes_bucket{le="+Inf"} 6',
      "request_bytes_sum 1002515",
      "request_bytes_count 6",
    }, parts())
  end)

  it("MET-2 a histogram has bounds for seconds unless it is given others", function()
    metrics():histogram("job_seconds", "How long jobs take.")

    local bounds = {}
    for bound in metrics():render():gmatch('job_seconds_bucket{le="(%S+)"}') do
      bounds[#bounds + 1] = bound
    end
    assert.are.equal("0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 "
      .. "5 10 +Inf", table.concat(bounds, " "))
  end)

  it("MET-2 have a series for each set of label values, in order", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "kind", "by" })
    assert.are.same({}, shown("jobs_total"))

    jobs:inc(1, { kind = "b", by = "y" })
    jobs:inc(2, { kind = "b", by = "x" })
    jobs:inc(4, { by = "y", kind = "a" })
    jobs:inc(8, { kind = "b", by = "x" })
    jobs:inc(0, { kind = "c", by = "x" })

    assert.are.same({
      'jobs_total{by="x",kind="b"} 10',
      'jobs_total{by="x",kind="c"} 0',
      'jobs_total{by="y",kind="a"} 4',
      'jobs_total{by="y",kind="b"} 1',
    }, shown("jobs_total"))
  end)

  it("MET-2 have labels also as gauges and histograms", function()
    local open = metrics():gauge("open", "Open.", { "kind" })
    local took = metrics():histogram("took", "Took.", { buckets = { 1 }, labels = { "kind" } })

    open:set(1, { kind = "a" })
    open:dec(1, { kind = "b" })
    open:inc(1, { kind = "a" })
    took:observe(0.5, { kind = "a" })

    assert.are.same({ 'open{kind="a"} 2', 'open{kind="b"} -1' }, shown("open"))
    assert.are.same({ 'took_bucket{kind="a",le="1"} 1', 'took_bucket{kind="a",le="+Inf"} 1' },
      shown("took_bucket"))
    assert.are.same({ 'took_sum{kind="a"} 0.5' }, shown("took_sum"))
  end)

  it("MET-2 come after those of the system, by name", function()
    for name in ("hgfedcba"):gmatch(".") do metrics():gauge(name, "Help.") end
    metrics():counter("i_total", "Help.")

    local names = {}
    for name in metrics():render():gmatch("# TYPE (%S+)") do names[#names + 1] = name end
    assert.are.equal("router_hedges_total a b c d e f g h i_total",
      table.concat(names, " ", #names - 9))
  end)

  it("MET-2 end each line, the last one too", function()
    assert.matches("%d\n$", metrics():render())
    assert.is_nil(metrics():render():find("\n\n"))
  end)

  it("MET-2 are one metric when they are made twice", function()
    assert.are.equal(metrics():counter("jobs_total", "Jobs.", { "kind", "by" }),
      metrics():counter("jobs_total", "Jobs.", { "by", "kind" }))
    assert.are.equal(metrics():gauge("open", "Open."), metrics():gauge("open", "Open.", {}))
    assert.are.equal(metrics():histogram("took", "Took.", { buckets = { 1, 2 } }),
      metrics():histogram("took", "Took.", { buckets = { 1.0, 2.0 } }))
  end)

  it("MET-2 refuse a name that is there as something else", function()
    metrics():gauge("open", "Open.", { "kind" })
    metrics():histogram("took", "Took.", { buckets = { 1, 2 } })
    local others = {
      function() metrics():gauge("open", "Open.") end,
      function() metrics():gauge("open", "Open.", { "by" }) end,
      function() metrics():gauge("open", "Open.", { "kind", "by" }) end,
      function() metrics():gauge("open", "Not open.", { "kind" }) end,
      function() metrics():histogram("open", "Open.", { labels = { "kind" } }) end,
      function() metrics():histogram("took", "Took.") end,
      function() metrics():histogram("took", "Took.", { buckets = { 1 } }) end,
      function() metrics():histogram("took", "Took.", { buckets = { 1, 2 }, labels = { "a" } }) end,
    }
    for _, other in ipairs(others) do
      assert.matches("is there already", raised_here(other), 1, true)
    end
  end)

  it("MET-2 copy what they are made with", function()
    local labels, buckets = { "kind" }, { 1, 2 }
    local took = metrics():histogram("took", "Took.", { labels = labels, buckets = buckets })
    labels[1], buckets[1] = "by", 5

    took:observe(1, { kind = "a" })

    assert.are.equal('took_bucket{kind="a",le="1"} 1', shown("took_bucket")[1])
  end)

  it("MET-2 refuse names that Prometheus would not take", function()
    local function named(kind, name, says)
      local text = raised_here(function() metrics()[kind](metrics(), name, "Help.") end)
      assert.matches("metrics:" .. kind .. ": the name ", text, 1, true)
      assert.matches(says, text, 1, true)
    end
    local letters = "must be letters, digits and _, and not begin with a digit"
    for _, kind in ipairs { "counter", "gauge", "histogram" } do
      for _, name in ipairs { "", "9", "a-b", "a b", "a:b", "a\nb", "ä", "a.b", 5, false, {} } do
        named(kind, name, letters)
      end
    end
    named("counter", nil, letters)
    named("counter", "jobs", "must end in _total")
    named("counter", "jobs_count", "must end in _total")
    named("gauge", "jobs_total", "must not end in _total")
    named("histogram", "jobs_total", "must not end in _total")
    for _, suffix in ipairs { "_bucket", "_sum", "_count" } do
      named("gauge", "jobs" .. suffix, "must not end in " .. suffix)
      named("histogram", "jobs" .. suffix, "must not end in " .. suffix)
    end
  end)

  it("MET-2 refuse names that begin as those of the system do", function()
    for line in metrics():render():gmatch("# TYPE (%S+ %S+)") do
      local name, kind = line:match("(%S+) (%S+)")
      local text = raised_here(function() metrics()[kind](metrics(), name, "Help.") end)
      assert.matches("which is for what the system counts", text, 1, true)
    end
    assert.has.errors(function() metrics():gauge("troupe_age", "Help.") end)
    metrics():gauge("actors", "Actors, as in films.")
  end)

  it("MET-2 want a help text", function()
    for _, help in ipairs { "", 5, false, "a\0b", "\xff", "\xed\xa0\x80" } do
      local text = raised_here(function() metrics():gauge("open", help) end)
      assert.matches("metrics:gauge: help must be a text", text, 1, true)
    end
    raised_here(function() metrics():gauge("open", nil) end)
    raised_here(function() metrics():histogram("open", nil) end)
  end)

  it("MET-2 refuse labels that Prometheus would not take", function()
    local function labelled(labels, says)
      local gauge = raised_here(function() metrics():gauge("open", "Open.", labels) end)
      assert.matches("metrics:gauge: " .. says, gauge, 1, true)
      local options = { labels = labels }
      local took = raised_here(function() metrics():histogram("took", "Took.", options) end)
      assert.matches("metrics:histogram: " .. says, took, 1, true)
    end
    for _, name in ipairs { "", "9", "a-b", "a:b", "ä", 5, true } do
      labelled({ name }, "the label ")
    end
    labelled({ "__a" }, 'the label "__a" must not begin with __')
    labelled({ "le" }, 'the label "le" has a meaning of its own')
    labelled({ "quantile" }, 'the label "quantile" has a meaning of its own')
    labelled({ "a", "a" }, 'the label "a" is given twice')
    labelled({ kind = "a" }, 'the label "a" must be in a list')
    labelled("kind", "labels must be a table")
  end)

  it("MET-2 refuse buckets that do not go up, or are none", function()
    local function with(buckets, says)
      local options = { buckets = buckets }
      local text = raised_here(function() metrics():histogram("took", "Took.", options) end)
      assert.matches("metrics:histogram: " .. says, text, 1, true)
    end
    with({}, "buckets must not be empty")
    with({ 2, 1 }, "buckets must go up")
    with({ 1, 1 }, "buckets must go up")
    with({ 1, math.huge }, "buckets[2] must be a finite number")
    with({ 0 / 0 }, "buckets[1] must be a finite number")
    with({ "1" }, "buckets[1] must be a finite number")
    with(5, "buckets must be a table")
    local text = raised_here(function() metrics():histogram("took", "Took.", { bucket = {} }) end)
    assert.matches('unknown option "bucket"', text, 1, true)
  end)

  it("MET-2 refuse labels other than their own", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "kind", "by" })
    local plain = metrics():gauge("open", "Open.")

    local function refuse(fn, says) assert.matches(says, raised_here(fn), 1, true) end
    refuse(function() jobs:inc() end, "counter:inc: labels must be a table (got nil)")
    refuse(function() jobs:inc(1, "a") end, 'counter:inc: labels must be a table (got "a")')
    refuse(function() jobs:inc(1, {}) end, "counter:inc: the label by must be a string")
    refuse(function() jobs:inc(1, { by = "x" }) end, "counter:inc: the label kind must be a string")
    refuse(function() jobs:inc(1, { by = "x", kind = "a", at = 1 }) end,
      'counter:inc: jobs_total has no label "at"')
    refuse(function() jobs:inc(1, { by = {}, kind = "a" }) end, "the label by must be a string")
    refuse(function() plain:set(1, { by = "x" }) end, 'gauge:set: open has no label "by"')
    refuse(function() plain:inc(1, { "x" }) end, "gauge:inc: open has no label 1")
    refuse(function() plain:dec(1, 5) end, "gauge:dec: labels must be a table")
    assert.are.same({}, shown("jobs_total"))
    assert.are.same({ "open 0" }, shown("open"))
  end)

  it("MET-2 take no labels where they have none", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", {})

    jobs:inc(1, {})
    jobs:inc(1, nil)

    assert.are.same({ "jobs_total 2" }, shown("jobs_total"))
  end)

  it("MET-2 leave nothing half done when a call is refused", function()
    local took = metrics():histogram("took", "Took.", { buckets = { 1 }, labels = { "kind" } })

    assert.has.errors(function() took:observe(0 / 0, { kind = "a" }) end)
    assert.has.errors(function() took:observe(1, { kind = {} }) end)

    assert.are.same({}, shown("took_count"))
  end)

  it("MET-2 show numbers that read back as they are", function()
    local gauge = metrics():gauge("value", "A value.")
    local values = {
      0, -0.0, 1, -1, 0.1, 1 / 3, 1e-9, 5e-324, 1.7976931348623157e308, 2 ^ 53, 2 ^ 63, -2 ^ 63,
      2 ^ 53 + 2, 123456789.123456789, math.pi, 1e15, 1e16, 1e17, 1e21, -1e-7, 0.1 + 0.2,
    }
    for _, value in ipairs(values) do
      gauge:set(value)
      local text = shown("value")[1]:match("^value (%-?[%d.]+e?[+-]?%d*)$")
      assert.are.equal(value, tonumber(text) + 0.0)
    end
  end)

  it("MET-2 show a gauge that is NaN or infinite as Prometheus writes it", function()
    local gauge = metrics():gauge("value", "A value.")
    local written = { NaN = 0 / 0, ["+Inf"] = math.huge, ["-Inf"] = -math.huge }
    for text, value in next, written do
      gauge:set(value)
      assert.are.same({ "value " .. text }, shown("value"))
    end
  end)

  it("MET-2 do not wrap around", function()
    local jobs = metrics():counter("jobs_total", "Jobs.")

    local open = metrics():gauge("open", "Open.")

    jobs:inc(math.maxinteger)
    jobs:inc(math.maxinteger)
    open:set(math.maxinteger)
    open:inc(math.maxinteger)

    assert.are.equal(2 ^ 64, samples().jobs_total)
    assert.are.equal(2 ^ 64, samples().open)
  end)

  it("MET-2 escape what would break a line", function()
    local jobs = metrics():counter("jobs_total", 'Jobs,\nof "all" kinds: C:\\n.', { "kind" })
    jobs:inc(1, { kind = 'a"b' })
    jobs:inc(2, { kind = "a\nb" })
    jobs:inc(3, { kind = "a\\nb" })
    jobs:inc(4, { kind = "äöü, 猫" })
    jobs:inc(5, { kind = "" })

    assert.are.same({
      '# HELP jobs_total Jobs,\\nof "all" kinds: C:\\\\n.',
      "# TYPE jobs_total counter",
      'jobs_total{kind=""} 5',
      'jobs_total{kind="a\\"b"} 1',
      'jobs_total{kind="a\\\\nb"} 3',
      'jobs_total{kind="a\\nb"} 2',
      'jobs_total{kind="äöü, 猫"} 4',
    }, read_samples.lines(metrics():render(), "jobs_total"))
  end)

  it("MET-2 replace what is no UTF-8, and zeros, in label values", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "kind" })

    jobs:inc(1, { kind = "a\xffb" })
    jobs:inc(1, { kind = "a\xfeb" })
    jobs:inc(1, { kind = "a\0b" })

    assert.are.same({ 'jobs_total{kind="a\u{FFFD}b"} 3' }, shown("jobs_total"))
  end)

  it("MET-2 take numbers and booleans as label values", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "kind" })

    for _, value in ipairs { 1, 1.0, "1", true, false, 0.5, -0.0 } do
      jobs:inc(1, { kind = value })
    end

    assert.are.same({
      'jobs_total{kind="0"} 1',
      'jobs_total{kind="0.5"} 1',
      'jobs_total{kind="1"} 3',
      'jobs_total{kind="false"} 1',
      'jobs_total{kind="true"} 1',
    }, shown("jobs_total"))
  end)

  it("MET-2 are no series twice for values that hold each other's quotes", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "a", "b" })

    jobs:inc(1, { a = 'x",b="y', b = "z" })
    jobs:inc(2, { a = "x", b = 'y",b="z' })

    assert.are.equal(2, #shown("jobs_total"))
  end)

  it("MET-3 take no path as a label value", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "by" })
    local ref = kit().system:spawn(ignore, "worker")

    for _, value in ipairs { ref, ref.path, tostring(ref), tostring(ref.path) } do
      local text = raised_here(function() jobs:inc(1, { by = value }) end)
      assert.matches("the label by must be a string, a number or a boolean, and no path", text, 1,
        true)
    end
    jobs:inc(1, { by = ref.name })
    assert.are.same({ 'jobs_total{by="worker"} 1' }, shown("jobs_total"))
  end)

  it("MET-3 fold into one series what comes after 10,000, with one warning", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "kind", "id" })
    for id = 1, 10000 do jobs:inc(1, { kind = "a", id = id }) end
    assert.are.equal(10000, #shown("jobs_total"))
    assert.are.same({}, kit().logs)

    for id = 9999, 10007 do jobs:inc(1, { kind = "a", id = id }) end

    local lines = shown("jobs_total")
    assert.are.equal(10001, #lines)
    local all = samples()
    assert.are.equal(7, all['jobs_total{id="other",kind="other"}'])
    assert.are.equal(2, all['jobs_total{id="9999",kind="a"}'])
    assert.are.equal(2, all['jobs_total{id="10000",kind="a"}'])
    assert.is_nil(all['jobs_total{id="10001",kind="a"}'])
    assert.are.equal(1, #kit().logs)
    assert.are.equal("warn", kit().logs[1].level)
    assert.are.equal("troupe://demo/", kit().logs[1].path)
    assert.matches("the metric jobs_total has more than 10000 series", kit().logs[1].message, 1,
      true)
  end)

  it("MET-3 fold each metric by itself, gauges and histograms too", function()
    local open = metrics():gauge("open", "Open.", { "id" })
    local took = metrics():histogram("took", "Took.", { buckets = { 1 }, labels = { "id" } })
    metrics():counter("jobs_total", "Jobs.", { "id" }):inc(1, { id = 10002 })
    for id = 1, 10002 do
      open:set(id, { id = id })
      took:observe(id, { id = id })
    end

    local all = samples()
    assert.are.equal(10002, all['open{id="other"}'])
    assert.are.equal(2, all['took_count{id="other"}'])
    assert.are.equal(20003, all['took_sum{id="other"}'])
    assert.are.equal(1, all['jobs_total{id="10002"}'])
    assert.are.equal(2, #kit().logs)
  end)

  it("MET-3 fold into a series that was called other before", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "id" })
    jobs:inc(5, { id = "other" })
    for id = 1, 10000 do jobs:inc(1, { id = id }) end

    assert.are.equal(6, samples()['jobs_total{id="other"}'])
    assert.are.equal(10000, #shown("jobs_total"))
    assert.are.equal(1, #kit().logs)
  end)

  it("MET-3 take no more memory for series that are folded", function()
    local jobs = metrics():counter("jobs_total", "Jobs.", { "id" })
    local function count(first, last)
      for id = first, last do jobs:inc(1, { id = id }) end
      collectgarbage()
      return collectgarbage("count")
    end
    local before = count(1, 10010)

    assert.is_true(count(20000, 60000) - before < 50)
  end)

  it("MET-3 may count in the log that is told of it", function()
    local jobs
    kit { log = function() jobs:inc(1, { id = "logged" }) end }
    jobs = metrics():counter("jobs_total", "Jobs.", { "id" })

    for id = 1, 10001 do jobs:inc(1, { id = id }) end

    assert.are.equal(2, samples()['jobs_total{id="other"}'])
  end)
end)
