// Goroutines that talk to each other through the kernel: pipes with deadlines, which Go's poller watches, times, and processor time. poller ROUNDS
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func pipe() (*os.File, *os.File) {
	r, w, err := os.Pipe()
	must(err)
	return r, w
}

func pair() (*os.File, *os.File) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	must(err)
	return os.NewFile(uintptr(ends[0]), "pair"), os.NewFile(uintptr(ends[1]), "pair")
}

// What comes in goes out, twice the number.
func serve(in, out *os.File) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		must(err)
		fmt.Fprintln(out, 2*n)
	}
	out.Close()
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	must(err)
	in, to := pipe()
	near, far := pair()
	go serve(in, far)
	silent, kept := pipe()
	answers := bufio.NewScanner(near)
	ticks := time.NewTicker(time.Millisecond)
	for n := 0; n < rounds; n++ {
		fmt.Fprintln(to, n)
		if !answers.Scan() {
			must(errors.New("no answer"))
		}
		fmt.Println(n, answers.Text())
		if n%8 == 0 {
			<-ticks.C
			must(silent.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err := silent.Read(make([]byte, 1))
			fmt.Println("silence:", errors.Is(err, os.ErrDeadlineExceeded))
		}
		sum := 0
		for k := 0; k < 20000; k++ {
			sum = sum*31 + k
		}
		fmt.Println(uint32(sum))
	}
	to.Close()
	fmt.Println("more:", answers.Scan(), kept.Close())
}
