// OpenTelemetry's own libraries around the edge proxy: a client before it, a server behind it, and a receiver that
// decodes what everybody exports. Prints its ports; then each line of its input is an address to get, or "spans".
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

type span struct {
	Service, Name, Kind, Trace, ID, Parent, State, Status, Message string
	Nanos                                                          uint64
	Attributes                                                     map[string]string
}

var (
	lock     sync.Mutex
	received = []span{}
)

func receive(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("content-encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		body = unpacked
	}
	bytes, _ := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err := (proto.UnmarshalOptions{DiscardUnknown: false}).Unmarshal(bytes, &request); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	lock.Lock()
	defer lock.Unlock()
	for _, resource := range request.ResourceSpans {
		service := attributes(resource.Resource.Attributes)["service.name"]
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				if len(s.ProtoReflect().GetUnknown()) > 0 || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
					http.Error(w, "not a span", 400)
					return
				}
				received = append(received, span{
					Service: service, Name: s.Name, Kind: s.Kind.String(), Trace: hex.EncodeToString(s.TraceId),
					ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), State: s.TraceState,
					Status: s.GetStatus().GetCode().String(), Message: s.GetStatus().GetMessage(),
					Nanos: s.EndTimeUnixNano - s.StartTimeUnixNano, Attributes: attributes(s.Attributes),
				})
			}
		}
	}
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("content-type", "application/x-protobuf")
	w.Write(answer)
}

func attributes(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, one := range list {
		switch value := one.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[one.Key] = value.StringValue
		case *common.AnyValue_IntValue:
			all[one.Key] = fmt.Sprint(value.IntValue)
		case *common.AnyValue_BoolValue:
			all[one.Key] = fmt.Sprint(value.BoolValue)
		}
	}
	return all
}

func serve(handler http.Handler) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(listener, handler)
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	receiver := serve(http.HandlerFunc(receive))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint("127.0.0.1:"+receiver))
	check(err)
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	answer := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/fails") {
			w.WriteHeader(500)
		}
		io.WriteString(w, r.Header.Get("svc-request-id"))
	}
	machine := serve(otelhttp.NewHandler(http.HandlerFunc(answer), "machine"))
	json.NewEncoder(os.Stdout).Encode(map[string]string{"receiver": receiver, "machine": machine})
	client := http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if input.Text() == "spans" {
			lock.Lock()
			json.NewEncoder(os.Stdout).Encode(received)
			lock.Unlock()
			continue
		}
		request, err := http.NewRequestWithContext(ctx, "GET", input.Text(), nil)
		check(err)
		request.Host = "web.localhost"
		response, err := client.Do(request)
		check(err)
		body, err := io.ReadAll(response.Body)
		check(err)
		response.Body.Close()
		json.NewEncoder(os.Stdout).Encode(map[string]any{
			"status": response.StatusCode, "body": string(body), "request_id": response.Header.Get("svc-request-id"),
		})
	}
}
