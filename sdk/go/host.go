package becket

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Host is what the host offers to its extension.
type Host struct {
	// Memory is what the host keeps for this extension.
	Memory *Memory
	// Config is the extension's own configuration.
	Config *Config

	extension *Extension
}

func newHost(e *Extension) *Host {
	h := &Host{extension: e}
	h.Memory = &Memory{h}
	h.Config = &Config{h}
	return h
}

// Info returns name and version of the host, and the zero value if it sent none.
func (h *Host) Info() HostInfo {
	h.extension.mu.Lock()
	defer h.extension.mu.Unlock()
	if h.extension.params.Host == nil {
		return HostInfo{}
	}
	return *h.extension.params.Host
}

// Call calls a method of the host and decodes its result into a pointer; nil drops it. A call with the context of a
// handler belongs to its request, and ends with it. Without a deadline it takes a minute at most. An error response is a
// *RemoteError.
func (h *Host) Call(ctx context.Context, method string, params, result any) error {
	p, err := h.peer()
	if err != nil {
		return err
	}
	return p.call(ctx, method, params, result)
}

// Notify sends a notification. It waits while the host does not read.
func (h *Host) Notify(ctx context.Context, method string, params any) error {
	p, err := h.peer()
	if err != nil {
		return err
	}
	return p.notify(ctx, method, params)
}

func (h *Host) peer() (*peer, error) {
	h.extension.mu.Lock()
	defer h.extension.mu.Unlock()
	if h.extension.peer == nil {
		return nil, fmt.Errorf("becket: %s has no host yet: it is there from OnStart on", h.extension.id)
	}
	return h.extension.peer, nil
}

// Log writes to the host's log, or to stderr if the host accepts no log messages. It does not wait.
func (h *Host) Log(level LogLevel, message string) {
	record := LogRecord{Level: level, Logger: h.extension.ID(), Message: message}
	if p, err := h.peer(); err == nil && p.has("log") && !p.writer.isFull() {
		if text, err := encodeParams(record); err == nil && p.writer.send(encodeNotification(MethodLog, text)) == nil {
			return
		}
	}
	logToStderr(level, record.Logger, message)
}

// logToStderr writes a message in the form that hosts read the level from.
func logToStderr(level LogLevel, logger, message string) {
	var text strings.Builder
	for _, line := range strings.Split(strings.TrimRight(message, "\n"), "\n") {
		fmt.Fprintf(&text, "%s:%s:%s\n", strings.ToUpper(string(level)), strings.ReplaceAll(logger, ":", "."), line)
	}
	fmt.Fprint(os.Stderr, text.String())
}

// Memory is what the host keeps for this extension. It needs the permissions memory.read and memory.write.
type Memory struct{ host *Host }

// Append keeps a record, and returns when it is durable. The namespace is set here.
func (m *Memory) Append(ctx context.Context, record Append) (kept Appended, err error) {
	record.Namespace = m.host.extension.ID()
	return kept, m.host.Call(ctx, MethodMemoryAppend, record, &kept)
}

// Query returns the records for which all conditions hold, the newest first. The namespace is set here.
func (m *Memory) Query(ctx context.Context, query Query) ([]Record, error) {
	query.Namespace = m.host.extension.ID()
	var found Records
	err := m.host.Call(ctx, MethodMemoryQuery, query, &found)
	return found.Records, err
}

// Config is the extension's own configuration. It needs config.write to set and config.subscribe to watch.
type Config struct{ host *Host }

// Get returns a value with its revision; the value is nil if there is none.
func (c *Config) Get(ctx context.Context, key string) (value ConfigValue, err error) {
	return value, c.host.Call(ctx, MethodConfigGet, ConfigGet{Key: key}, &value)
}

// Set changes a value, and returns when it is durable.
func (c *Config) Set(ctx context.Context, key, value string) (ConfigSaved, error) {
	return c.SetIf(ctx, ConfigSet{Key: key, Value: value})
}

// SetIf changes a value only if its revision is still IfRevision; otherwise the result is not OK.
func (c *Config) SetIf(ctx context.Context, change ConfigSet) (saved ConfigSaved, err error) {
	return saved, c.host.Call(ctx, MethodConfigSet, change, &saved)
}

// Subscribe has changes of these keys sent, or of all. Call OnChange before.
func (c *Config) Subscribe(ctx context.Context, keys ...string) (subscribed ConfigSubscribed, err error) {
	return subscribed, c.host.Call(ctx, MethodConfigSubscribe, ConfigSubscribe{Keys: keys}, &subscribed)
}

// OnChange has a function called with each change, one after the other. Call it before Run or Serve.
func (c *Config) OnChange(handle func(ctx context.Context, change ConfigChanged)) {
	c.host.extension.onChange = append(c.host.extension.onChange, handle)
}

func (e *Extension) changeConfig(ctx context.Context, params json.RawMessage) (any, error) {
	change, err := decodeParams[ConfigChanged](params)
	if err != nil {
		return nil, err
	}
	for _, handle := range e.onChange {
		handle(ctx, change)
	}
	return nil, nil
}
