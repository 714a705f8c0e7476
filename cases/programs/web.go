// An HTTP server as Go's library has it, with connections that stay, deadlines and answers in pieces. POST /add with a number and
// the header Client: answers "N TOTAL", TOTAL being the sum of that client's numbers, over however many connections. GET /pieces
// answers with that client's total in many pieces. GET /quit ends it. web PORT
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type totals struct {
	lock     sync.Mutex
	of       map[string]int
	answered int
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func (t *totals) add(answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	must(err)
	number, err := strconv.Atoi(strings.TrimSpace(string(body)))
	must(err)
	client := request.Header.Get("Client")
	t.lock.Lock()
	t.of[client] += number
	t.answered++
	total := t.of[client]
	t.lock.Unlock()
	fmt.Fprintf(answer, "%d %d\n", number, total)
}

func (t *totals) pieces(answer http.ResponseWriter, request *http.Request) {
	t.lock.Lock()
	total := t.of[request.Header.Get("Client")]
	t.answered++
	t.lock.Unlock()
	for i := 0; i < 10; i++ {
		fmt.Fprintf(answer, "%d %d\n", i, total)
		// What is flushed becomes a chunk of its own.
		answer.(http.Flusher).Flush()
	}
}

func main() {
	t, quit := &totals{of: make(map[string]int)}, make(chan bool)
	routes := http.NewServeMux()
	routes.HandleFunc("/add", t.add)
	routes.HandleFunc("/pieces", t.pieces)
	routes.HandleFunc("/quit", func(http.ResponseWriter, *http.Request) { quit <- true })
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: routes, ReadTimeout: time.Minute, IdleTimeout: time.Minute}
	over := make(chan bool)
	go func() {
		<-quit
		must(server.Shutdown(context.Background()))
		over <- true
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		must(err)
	}
	<-over
	t.lock.Lock()
	fmt.Println("answered", t.answered, "requests")
}
