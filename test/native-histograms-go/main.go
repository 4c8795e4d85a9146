// Observes a value of its own series at each scrape and exposes native histograms, for tests of those who store them.
package main

import (
	"flag"
	"log"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	flag.Parse()
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            "latency_seconds",
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: 0,
	}, []string{"route"})
	sizes := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "size_bytes",
		Buckets: []float64{256, 1024, 4096},
	}, []string{"route"})
	scrapes := prometheus.NewCounter(prometheus.CounterOpts{Name: "scrapes_total"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(latency, sizes, scrapes)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	round := 0
	http.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		round++
		scrapes.Inc()
		sizes.WithLabelValues("wide").Observe(512)
		for i := 0; i < 50; i++ {
			x := float64(round*50 + i)
			latency.WithLabelValues("wide").Observe(math.Exp(math.Mod(x*0.37, 20) - 10))
			latency.WithLabelValues("signed").Observe(math.Sin(x) * 3)
			latency.WithLabelValues("zeros").Observe(float64(i % 2))
		}
		handler.ServeHTTP(w, r)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
