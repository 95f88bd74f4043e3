--- A busted output handler: which file runs, every failure in full as it happens, and last of all
--- a line `N passed, N failed` (and `, N skipped` if so).
---
--- Failures are printed at once, so that a crash later in the run does not swallow them.
return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()

  local passed, failed, skipped = 0, 0, 0
  local failed_names = {}
  local last = { status = nil, name = nil } -- the test that ended last

  local function indented(text)
    return "  " .. text:gsub("^%s+", ""):gsub("%s+$", ""):gsub("\n", "\n  ")
  end

  local function position(element)
    local trace = element.trace
    return trace and trace.short_src and (" (%s:%d)"):format(trace.short_src, trace.currentline)
      or ""
  end

  --- busted has put `file:line:` in front of every message but those of its own loader.
  local function report(name, element, message, trace)
    local label = name .. position(element)
    failed_names[#failed_names + 1] = label
    print("FAILED " .. label)
    print(indented(tostring(message)))
    if trace and trace.traceback then print(indented(trace.traceback)) end
    io.flush()
    return nil, true
  end

  local function test_failed(element, _, message, trace)
    return report(handler.getFullName(element), element, message, trace)
  end

  --- An error outside of a test is a failure of its own, except that what fails after a test
  --- fails that test.
  local function block_failed(element, _, message, trace)
    if element.descriptor == "it" then return nil, true end
    local name = element.name or element.descriptor or "busted"
    if element.descriptor == "after_each" and last.name then
      name = last.name .. ", after_each"
      if last.status == "success" then passed = passed - 1 end
      if last.status ~= "failed" then failed = failed + 1 end
      last.status = "failed"
    else
      failed = failed + 1
    end
    return report(name, element, message, trace)
  end

  local function test_ended(element, _, status)
    if status == "success" then
      passed = passed + 1
    elseif status == "pending" then
      skipped = skipped + 1
      print("SKIPPED " .. handler.getFullName(element) .. position(element))
    else
      failed = failed + 1
      status = "failed"
    end
    last = { status = status, name = handler.getFullName(element) }
    return nil, true
  end

  local function file_started(file)
    print(file.name)
    io.flush()
    return nil, true
  end

  local function suite_ended()
    if #failed_names > 0 then print("\nFailed:\n  " .. table.concat(failed_names, "\n  ")) end
    local skips = skipped > 0 and (", %d skipped"):format(skipped) or ""
    print(("\n%d passed, %d failed%s"):format(passed, failed, skips))
    io.flush()
    return nil, true
  end

  busted.subscribe({ "file", "start" }, file_started)
  busted.subscribe({ "test", "end" }, test_ended)
  busted.subscribe({ "failure", "it" }, test_failed)
  busted.subscribe({ "error", "it" }, test_failed)
  busted.subscribe({ "failure" }, block_failed)
  busted.subscribe({ "error" }, block_failed)
  busted.subscribe({ "suite", "end" }, suite_ended)
  return handler
end
