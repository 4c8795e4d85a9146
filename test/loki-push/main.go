// Takes requests to Loki's push API as Loki does, by Loki's own parser, and says on standard output what it read: first the
// port, then a line of JSON per entry with its labels, its nanoseconds and its line.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/go-kit/log"
	"github.com/grafana/loki/v3/pkg/loghttp/push"
)

const most = 100 << 20

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, http.HandlerFunc(take)))
}

func take(response http.ResponseWriter, request *http.Request) {
	parsed, _, err := push.ParseRequest(log.NewNopLogger(), "acme", most, most, request, push.EmptyLimits{}, nil,
		push.ParseLokiRequest, nil, nil, "", "loki")
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, stream := range parsed.Streams {
		for _, entry := range stream.Entries {
			// Nanoseconds as text: they are too large for the numbers of whoever reads this.
			if err := out.Encode([]string{stream.Labels, fmt.Sprint(entry.Timestamp.UnixNano()), entry.Line}); err != nil {
				panic(err)
			}
		}
	}
	response.WriteHeader(http.StatusNoContent)
}
