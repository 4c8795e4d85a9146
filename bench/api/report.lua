-- What wrk measured, as one line of JSON.
function done(summary, latency, requests)
  local errors = summary.errors
  local refused = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "refused": %s}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    refused == 0 and "[]" or string.format('[["any", %d]]', refused)))
end
