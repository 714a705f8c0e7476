-- For wrk: pages of the site in random order; its argument is the seed.
function init(args)
  math.randomseed(tonumber(args[1]))
end

function request()
  return wrk.format("GET", "/p" .. math.random(0, 99) .. ".html")
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("\nfigures %d %d %d %f %f %f %d\n", summary.requests, summary.duration, summary.bytes,
    latency.mean, latency:percentile(50), latency:percentile(99), failed))
end
