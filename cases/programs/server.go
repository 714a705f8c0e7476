// A TCP server with a goroutine for each connection and a few that work behind them: to each line "N" it answers "N TOTAL",
// TOTAL being the sum of that connection's numbers. It makes garbage all the while. "quit" ends it. server PORT
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// A request on its way through the workers.
type request struct {
	number int
	answer chan string
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// The text of a number, by way of many small objects.
func text(number int) string {
	digits := make(map[int]*byte)
	for i, c := range []byte(strconv.Itoa(number)) {
		digit := c
		digits[i] = &digit
	}
	line := make([]byte, 0, len(digits))
	for i := 0; i < len(digits); i++ {
		line = append(line, *digits[i])
	}
	return string(line)
}

func work(requests <-chan request) {
	for r := range requests {
		r.answer <- text(r.number)
	}
}

func serve(peer net.Conn, requests chan<- request, answered *int, lock *sync.Mutex, quit chan<- bool) {
	defer peer.Close()
	total := 0
	answer := make(chan string)
	lines := bufio.NewScanner(peer)
	for lines.Scan() {
		if lines.Text() == "quit" {
			quit <- true
			return
		}
		number, err := strconv.Atoi(lines.Text())
		must(err)
		total += number
		requests <- request{number, answer}
		reply := <-answer
		lock.Lock()
		*answered++
		lock.Unlock()
		_, err = fmt.Fprintf(peer, "%s %d\n", reply, total)
		must(err)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	must(err)
	requests, quit := make(chan request), make(chan bool)
	for i := 0; i < 4; i++ {
		go work(requests)
	}
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			runtime.GC()
		}
	}()
	answered, lock := 0, sync.Mutex{}
	go func() {
		for {
			peer, err := listener.Accept()
			must(err)
			go serve(peer, requests, &answered, &lock, quit)
		}
	}()
	<-quit
	lock.Lock()
	fmt.Println("answered", answered, "lines")
}
