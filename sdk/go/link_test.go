package becket

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"
)

const patience = 20 * time.Second

// rawLink is a host that writes and reads frames by hand.
type rawLink struct {
	t      *testing.T
	out    io.WriteCloser
	frames chan string
	ended  chan error // what Serve returned
}

func connectRaw(t *testing.T, ext *Extension) *rawLink {
	t.Helper()
	hostIn, extOut := io.Pipe()
	extIn, hostOut := io.Pipe()
	link := &rawLink{t: t, out: hostOut, frames: make(chan string, 1000), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		link.ended <- ext.Serve(ctx, extIn, extOut)
		extOut.Close()
	}()
	go func() {
		reader := bufio.NewReader(hostIn)
		for {
			body, err := readFrame(reader)
			if err != nil {
				close(link.frames)
				return
			}
			link.frames <- string(body)
		}
	}()
	t.Cleanup(func() {
		cancel()
		hostOut.Close()
	})
	return link
}

func (l *rawLink) send(body string) {
	l.t.Helper()
	if _, err := l.out.Write(appendFrame(nil, []byte(body))); err != nil {
		l.t.Fatal(err)
	}
}

func (l *rawLink) receive() string {
	l.t.Helper()
	select {
	case frame, isOpen := <-l.frames:
		if !isOpen {
			l.t.Fatal("the link has ended")
		}
		return frame
	case <-time.After(patience):
		l.t.Fatal("no frame arrived")
	}
	return ""
}

// expect receives a frame with exactly this text.
func (l *rawLink) expect(want string) {
	l.t.Helper()
	if got := l.receive(); got != want {
		l.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func (l *rawLink) initialize(features string) {
	l.t.Helper()
	l.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"extension_protocol_version":1,` +
		`"plugin_id":"test","plugin_root":"/opt/test","config":{"theme":"dark"},"features":` + features + `}}`)
	l.receive()
}

const allFeatures = `["cancel","progress","deadline","credit","ping","log","no_params"]`

// failureOf returns code and message of an error response.
func failureOf(t *testing.T, frame string) (json.RawMessage, Error) {
	t.Helper()
	var response struct {
		ID    json.RawMessage
		Error *Error
	}
	if err := json.Unmarshal([]byte(frame), &response); err != nil || response.Error == nil {
		t.Fatalf("not an error response: %s", frame)
	}
	return response.ID, *response.Error
}

// testHost is a host with handlers, after the handshake.
type testHost struct {
	*peer
	t        *testing.T
	declared Initialized
	ended    chan error

	mu     sync.Mutex
	events []event
	calls  map[string]handlerFunc
}

type event struct {
	method string
	params json.RawMessage
}

func connect(t *testing.T, ext *Extension) *testHost {
	t.Helper()
	hostIn, extOut := io.Pipe()
	extIn, hostOut := io.Pipe()
	host := &testHost{peer: newPeer(hostOut, "host"), t: t, ended: make(chan error, 1), calls: map[string]handlerFunc{}}
	host.findHandler = func(method string) handlerFunc {
		host.mu.Lock()
		defer host.mu.Unlock()
		return host.calls[method]
	}
	host.findNotification = func(method string) handlerFunc {
		return func(_ context.Context, params json.RawMessage) (any, error) {
			host.mu.Lock()
			defer host.mu.Unlock()
			host.events = append(host.events, event{method, params})
			return nil, nil
		}
	}
	host.limitFeatures(Features)
	go func() {
		host.ended <- ext.Serve(context.Background(), extIn, extOut)
		extOut.Close()
	}()
	go func() { _ = host.read(hostIn) }()
	t.Cleanup(func() { hostOut.Close() })
	root := "/opt/test"
	params := Initialize{
		ExtensionProtocolVersion: 1, PluginID: "test", PluginRoot: &root, Config: map[string]any{"theme": "dark"},
		Host: &HostInfo{Name: "tester", Version: "1"}, Features: Features,
	}
	if err := host.invoke(MethodInitialize, params, &host.declared); err != nil {
		t.Fatal(err)
	}
	return host
}

func (h *testHost) invoke(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return h.call(ctx, method, params, result)
}

func (h *testHost) serve(method string, handler handlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[method] = handler
}

// await returns the first event of this name, waiting for it.
func (h *testHost) await(method string) json.RawMessage {
	h.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		h.mu.Lock()
		for _, one := range h.events {
			if one.method == method {
				h.mu.Unlock()
				return one.params
			}
		}
		h.mu.Unlock()
	}
	h.t.Fatalf("no %s arrived", method)
	return nil
}

func mustFailWith(t *testing.T, err error, code int) *RemoteError {
	t.Helper()
	failure, isRemote := err.(*RemoteError)
	if !isRemote || failure.Code != code {
		t.Fatalf("got %v, want the code %d", err, code)
	}
	return failure
}
