package becket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const childVariable = "BECKET_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	ext := New("child", "1")
	fmt.Println("printed before Run")
	ext.OnStop(func(context.Context) error { fmt.Fprintln(os.Stderr, "stopped"); return nil })
	ext.AddMethod("print", func(context.Context, json.RawMessage) (any, error) {
		fmt.Println("printed by a handler")
		output := exec.Command("echo", "printed by a grandchild")
		output.Stdout = os.NewFile(1, "stdout")
		input, err := io.ReadAll(os.Stdin)
		return len(input), errors.Join(output.Run(), err)
	})
	ext.AddMethod("block", func(context.Context, json.RawMessage) (any, error) { select {} })
	ext.AddMethod("spin", func(context.Context, json.RawMessage) (any, error) {
		for i := 0; ; i++ {
			_ = i
		}
	})
	ext.AddMethod("slow", func(context.Context, json.RawMessage) (any, error) {
		time.Sleep(50 * time.Millisecond)
		return "slow", nil
	})
	ext.Run()
}

// child is this test program as an extension.
type child struct {
	*exec.Cmd
	*rawLink
	stderr bytes.Buffer
	in     io.WriteCloser
	stdout io.Closer
}

func start(t *testing.T) *child {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are redirected on Linux only")
	}
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childVariable+"=1")
	c.Cmd.Stderr = &c.stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in, c.stdout = in, out
	c.rawLink = &rawLink{t: t, out: in, frames: make(chan string, 100), ended: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		reader := bufio.NewReader(out)
		for {
			body, err := readFrame(reader)
			if err != nil {
				if err != io.EOF && !errors.Is(err, os.ErrClosed) {
					c.frames <- err.Error()
				}
				close(c.frames)
				return
			}
			c.frames <- string(body)
		}
	}()
	go func() {
		<-read
		c.ended <- c.Cmd.Wait()
	}()
	t.Cleanup(func() { _ = c.Process.Kill() })
	c.initialize(allFeatures)
	return c
}

// exitCode waits for the end of the child.
func (c *child) exitCode() int {
	c.t.Helper()
	select {
	case <-c.rawLink.ended:
		return c.ProcessState.ExitCode()
	case <-time.After(patience):
		c.t.Fatal("the child is still there")
	}
	return -1
}

func TestPrintsNeverReachTheWire(t *testing.T) {
	c := start(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"print"}`)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":0}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":null}`)
	if code := c.exitCode(); code != exitStopped {
		t.Errorf("it exited with %d", code)
	}
	for _, text := range []string{"printed before Run", "printed by a handler", "printed by a grandchild", "stopped"} {
		if !strings.Contains(c.stderr.String(), text) {
			t.Errorf("stderr does not have %q: %s", text, c.stderr.String())
		}
	}
}

func TestTheEndOfStdinEndsTheProgramAlsoWhenHandlersBlock(t *testing.T) {
	c := start(t)
	for id, method := range []string{"block", "spin", "slow"} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method))
	}
	c.in.Close()
	c.expect(`{"jsonrpc":"2.0","id":2,"result":"slow"}`) // what was requested before the end
	if code := c.exitCode(); code != exitStopped {
		t.Errorf("it exited with %d: %s", code, c.stderr.String())
	}
}

func TestAHostThatClosesStdoutEndsTheProgram(t *testing.T) {
	c := start(t)
	if err := c.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	c.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	if code := c.exitCode(); code != exitStopped || !strings.Contains(c.stderr.String(), "stopped") {
		t.Errorf("it exited with %d: %s", code, c.stderr.String())
	}
}

func TestSignalsEndTheProgramInOrder(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		c := start(t)
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := c.exitCode(); code != exitStopped || !strings.Contains(c.stderr.String(), "stopped") {
			t.Errorf("it exited with %d: %s", code, c.stderr.String())
		}
	}
}

func TestAHostThatBreaksTheProtocolEndsTheProgramWithAMessage(t *testing.T) {
	c := start(t)
	if _, err := c.in.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if code := c.exitCode(); code != exitProtocolError || !strings.Contains(c.stderr.String(), "GET / HTTP") {
		t.Errorf("it exited with %d: %s", code, c.stderr.String())
	}
}
