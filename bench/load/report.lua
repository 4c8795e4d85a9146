-- What wrk measured, as one line of JSON.
function done(summary, latency, requests)
  local refused = {}
  for kind, count in pairs(summary.errors) do
    if count > 0 then refused[#refused + 1] = string.format('["%s", %d]', kind, count) end
  end
  io.write(string.format('{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "refused": [%s]}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    table.concat(refused, ", ")))
end
