package becket

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// The exit codes of Run.
const (
	exitStopped       = 0 // the host requested shutdown, closed stdin or sent a signal
	exitUsage         = 2 // started in a terminal: there is no host
	exitProtocolError = 3 // the host broke the protocol
	exitStopTimeout   = 4 // stopping took too long
)

// stopLimit bounds the end of the program, whatever its handlers do.
const stopLimit = unfinishedGrace + cancelledGrace + stopGrace + flushTime + 300*time.Millisecond

// stdio holds the private descriptors of the wire.
type stdio struct{ in, out *os.File }

// takeFromHost redirects stdin and stdout in a program that a host has started: both are pipes or sockets.
func (s *stdio) takeFromHost() {
	if isPipe(os.Stdin) && isPipe(os.Stdout) {
		_ = s.take()
	}
}

func isPipe(file *os.File) bool {
	status, err := file.Stat()
	return err == nil && status.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// Run serves the host that started this program, and exits when it is done: after the host's shutdown request, when
// stdin ends, and on SIGTERM or SIGINT. The exit code is 0, 3 if the host broke the protocol, and 4 if stopping took too
// long. In a terminal it prints what the extension offers, and exits with 2.
func (e *Extension) Run() {
	os.Exit(e.run())
}

func (e *Extension) run() int {
	if isTerminal(os.Stdin) {
		fmt.Print(e.usage())
		return exitUsage
	}
	if err := e.wire.take(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: stdout is closed: start this program with a pipe there: %v\n", e.id, err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// Without this, a write to a stderr that the host has closed would end the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ended := make(chan error, 1)
	in := &watchedReader{file: e.wire.in, ended: make(chan struct{})}
	go func() { ended <- e.Serve(ctx, in, e.wire.out) }()
	select {
	case err := <-ended:
		return e.exitCode(err)
	case <-in.ended:
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	select {
	case err := <-ended:
		return e.exitCode(err)
	case <-time.After(stopLimit):
		logToStderr(LogLevelError, e.id, "stopping took too long: given up")
		return exitStopTimeout
	}
}

func (e *Extension) exitCode(err error) int {
	if err == nil {
		return exitStopped
	}
	logToStderr(LogLevelError, e.id, err.Error())
	return exitProtocolError
}

// watchedReader reports the end of stdin.
type watchedReader struct {
	file  *os.File
	ended chan struct{}
	once  bool
}

func (r *watchedReader) Read(buffer []byte) (int, error) {
	n, err := r.file.Read(buffer)
	if err != nil && !r.once {
		r.once = true
		close(r.ended)
	}
	return n, err
}

func isTerminal(file *os.File) bool {
	status, err := file.Stat()
	return err == nil && status.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull && !isNullDevice(status)
}

func isNullDevice(status os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, status)
}

// usage returns the text for a user who started the program in a terminal.
func (e *Extension) usage() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s is an extension: a host program starts it, and calls it over stdin and stdout.\n", e.id, e.version)
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&text, "\n%s:\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	var tools, providers, hooks []string
	for _, one := range e.tools {
		tools = append(tools, one.declared.Name+": "+one.declared.Description)
	}
	for _, one := range e.providers {
		providers = append(providers, one.declared.ID+": "+one.declared.Description)
	}
	for _, one := range e.hooks {
		hooks = append(hooks, string(one.kind))
	}
	section("Tools", tools)
	section("Commands", sortedNames(e.commands))
	section("Providers", providers)
	section("Hooks", hooks)
	return text.String()
}
