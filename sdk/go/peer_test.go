package becket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestInvalidMessagesGetTheErrorsOfTheSpecification(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("echo", func(_ context.Context, params json.RawMessage) (any, error) { return params, nil })
	link := connectRaw(t, ext)
	link.initialize("[]")
	for _, one := range []struct {
		body string
		code int
		id   string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":`, -32700, "null"},
		{`hello`, -32700, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "null"},
		{`7`, -32600, "null"},
		{`[]`, -32600, "null"},
		{`{"id":1,"method":"echo"}`, -32600, "1"},
		{`{"jsonrpc":"1.0","id":1,"method":"echo"}`, -32600, "1"},
		{`{"jsonrpc":"2.0","id":1}`, -32600, "1"},
		{`{"jsonrpc":"2.0","ID":1,"method":7}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, -32600, "1"},
		{`{"jsonrpc":"2.0","id":true,"method":"echo"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":{},"method":"echo"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"echo","method":"none"}`, -32600, "1"},
		{`{"jsonrpc":"2.0","id":"a","method":"none"}`, -32601, `"a"`},
		{`{"jsonrpc":"2.0","id":1.0,"method":"tool.call","params":{}}`, -32601, "1.0"},
		{`{"jsonrpc":"2.0","id":1,"method":"echo","params":7}`, -32602, "1"},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 257) + `","method":"echo"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 1025) + `"}`, -32600, "1"},
		{`[` + strings.Repeat("7,", 50) + `7]`, 1004, "null"},
		{strings.Repeat("[", 100) + strings.Repeat("]", 100), 1004, "null"},
	} {
		link.send(one.body)
		if id, failure := failureOf(t, link.receive()); failure.Code != one.code || string(id) != one.id {
			t.Errorf("%.60s: got %d with the id %s", one.body, failure.Code, id)
		}
	}
	// No response to these, and the link stays open.
	link.send(`{"jsonrpc":"2.0","id":99,"result":1}`)
	link.send(`{"jsonrpc":"2.0","id":99,"result":1,"error":{"code":1,"message":"x"}}`)
	link.send(`{"jsonrpc":"1.0","id":99,"result":1}`)
	link.send(`{"jsonrpc":"2.0","method":"none"}`)
	link.send(`{"jsonrpc":"2.0","method":"echo","params":7}`)
	link.send(`{"jsonrpc":"2.0","id":"\u0061","method":"echo","params":{"text":"käse <b>"}}`)
	link.expect(`{"jsonrpc":"2.0","id":"\u0061","result":{"text":"käse <b>"}}`)
}

func TestABatchIsAnsweredInOneArray(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("echo", func(_ context.Context, params json.RawMessage) (any, error) { return params, nil })
	link := connectRaw(t, ext)
	link.initialize("[]")
	link.send(`[{"jsonrpc":"2.0","method":"none"},{"jsonrpc":"2.0","method":"none"}]`)
	link.send(`[{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]},7,{"jsonrpc":"2.0","method":"none"},` +
		`{"jsonrpc":"2.0","id":2,"method":"none"}]`)
	var responses []struct{ ID *int }
	if err := json.Unmarshal([]byte(link.receive()), &responses); err != nil || len(responses) != 3 {
		t.Fatalf("got %v, %v", responses, err)
	}
}

func TestResponsesThatAreTooLargeForOneFrameAreReplaced(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("large", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxFrame*2/3), nil })
	link := connectRaw(t, ext)
	link.initialize("[]")
	link.send(`[{"jsonrpc":"2.0","id":1,"method":"large"},{"jsonrpc":"2.0","id":2,"method":"large"}]`)
	var responses []struct{ Error *Error }
	if err := json.Unmarshal([]byte(link.receive()), &responses); err != nil || len(responses) != 2 {
		t.Fatalf("got %d responses, %v", len(responses), err)
	}
	if last := responses[1].Error; responses[0].Error != nil || last == nil || last.Code != CodeTooLarge {
		t.Errorf("got %v", last)
	}
}

func TestPingIsAnsweredWhileHandlersBlock(t *testing.T) {
	ext := New("test", "1")
	release := make(chan struct{})
	ext.AddMethod("block", func(context.Context, json.RawMessage) (any, error) { <-release; return nil, nil })
	link := connectRaw(t, ext)
	link.initialize("[]")
	link.send(`{"jsonrpc":"2.0","id":1,"method":"block"}`)
	link.send(`{"jsonrpc":"2.0","id":2,"method":"$/ping"}`)
	link.expect(`{"jsonrpc":"2.0","id":2,"result":null}`)
	link.send(`{"jsonrpc":"2.0","id":1,"method":"block"}`)
	if id, failure := failureOf(t, link.receive()); string(id) != "null" || failure.Code != CodeInvalidRequest {
		t.Errorf("an id in use: got %v with the id %s", failure, id)
	}
	close(release)
	link.expect(`{"jsonrpc":"2.0","id":1,"result":null}`)
}

func TestCallsInBothDirectionsInterleave(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("total", func(ctx context.Context, params json.RawMessage) (any, error) {
		numbers, total := []int{}, 0
		if err := json.Unmarshal(params, &numbers); err != nil {
			return nil, err
		}
		for _, number := range numbers {
			if err := ext.Host.Call(ctx, "host/add", []int{total, number}, &total); err != nil {
				return nil, err
			}
		}
		return total, nil
	})
	host := connect(t, ext)
	var together atomic.Int32
	all := make(chan struct{})
	host.serve("host/add", func(_ context.Context, params json.RawMessage) (any, error) {
		if together.Add(1) == 8 {
			close(all)
		}
		<-all // every one of the eight calls is open at once
		var pair [2]int
		if err := json.Unmarshal(params, &pair); err != nil {
			return nil, err
		}
		return pair[0] + pair[1], nil
	})
	totals := make(chan error, 8)
	for range 8 {
		go func() {
			var total int
			err := host.invoke("total", []int{1, 2, 3, 4}, &total)
			if err == nil && total != 10 {
				err = fmt.Errorf("the total is %d", total)
			}
			totals <- err
		}()
	}
	for range 8 {
		if err := <-totals; err != nil {
			t.Error(err)
		}
	}
}

func TestACancelledRequestEndsItsContextAndItsNestedCall(t *testing.T) {
	ext := New("test", "1")
	causes := make(chan error, 1)
	ext.AddMethod("outer", func(ctx context.Context, _ json.RawMessage) (any, error) {
		err := ext.Host.Call(ctx, "host/wait", nil, nil)
		causes <- err
		return nil, err
	})
	host := connect(t, ext)
	inner := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	host.serve("host/wait", func(nested context.Context, _ json.RawMessage) (any, error) {
		cancel()
		<-nested.Done()
		inner <- context.Cause(nested)
		return nil, nested.Err()
	})
	if err := host.call(ctx, "outer", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	if err := <-causes; !errors.Is(err, ErrCancelled) {
		t.Errorf("the handler got %v", err)
	}
	if err := <-inner; !errors.Is(err, ErrCancelled) {
		t.Errorf("the nested handler got %v", err)
	}
}

func TestACancelledRequestStillGetsAResponse(t *testing.T) {
	ext := New("test", "1")
	started := make(chan struct{}, 2)
	release := make(chan struct{})
	defer close(release)
	ext.AddMethod("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("a wrapped %w", ctx.Err())
	})
	ext.AddMethod("stubborn", func(context.Context, json.RawMessage) (any, error) {
		started <- struct{}{}
		<-release
		return nil, nil
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	for id, method := range []string{"wait", "stubborn"} {
		link.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method))
		<-started
		link.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, id))
		link.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32800,"message":"cancelled"}}`, id))
	}
}

func TestADeadlineEndsTheHandler(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrDeadline) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, Errorf(7, "the cause is %v", context.Cause(ctx))
		}
		return nil, ctx.Err()
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	link.send(`{"jsonrpc":"2.0","id":1,"method":"wait","params":{"_meta":{"becket":{"timeout_ms":20}}}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeTimeout {
		t.Errorf("got %v", failure)
	}
}

func TestANestedCallCarriesTheRemainingTimeItsParentAndItsDepth(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("outer", func(ctx context.Context, _ json.RawMessage) (any, error) {
		var result string
		err := ext.Host.Call(ctx, "inner", nil, &result)
		return result, err
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	link.send(`{"jsonrpc":"2.0","id":"p","method":"outer","params":{"_meta":{"becket":{"timeout_ms":50000,"depth":3}}}}`)
	var call struct {
		ID     int
		Params struct {
			Meta struct {
				Becket struct {
					TimeoutMS int64           `json:"timeout_ms"`
					Parent    json.RawMessage `json:"parent"`
					Depth     int64           `json:"depth"`
					NoParams  bool            `json:"no_params"`
				}
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(link.receive()), &call); err != nil {
		t.Fatal(err)
	}
	meta := call.Params.Meta.Becket
	if string(meta.Parent) != `"p"` || meta.Depth != 4 || !meta.NoParams || meta.TimeoutMS > 50000 || meta.TimeoutMS < 1 {
		t.Errorf("got %+v", meta)
	}
	link.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"x"}`, call.ID))
	link.expect(`{"jsonrpc":"2.0","id":"p","result":"x"}`)
	link.send(`{"jsonrpc":"2.0","id":2,"method":"outer","params":{"_meta":{"becket":{"depth":33}}}}`)
	if _, failure := failureOf(t, link.receive()); failure.Code != CodeBusy {
		t.Errorf("too deep: got %v", failure)
	}
}

func TestEventsWaitForCredit(t *testing.T) {
	ext := New("test", "1")
	var sent atomic.Int32
	ext.AddMethod("count", func(ctx context.Context, _ json.RawMessage) (any, error) {
		for i := range 4 {
			if err := Progress(ctx, i); err != nil {
				return nil, err
			}
			sent.Add(1)
		}
		return "done", nil
	})
	link := connectRaw(t, ext)
	link.initialize(allFeatures)
	link.send(`{"jsonrpc":"2.0","id":1,"method":"count","params":{"_meta":{"becket":{"credit":2}}}}`)
	link.expect(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":0}}`)
	link.expect(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":1}}`)
	link.send(`{"jsonrpc":"2.0","id":2,"method":"$/ping"}`)
	link.expect(`{"jsonrpc":"2.0","id":2,"result":null}`) // and no third event before it
	if count := sent.Load(); count > 2 {
		t.Errorf("%d events were sent", count)
	}
	link.send(`{"jsonrpc":"2.0","method":"$/credit","params":{"id":1,"n":2}}`)
	link.expect(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":2}}`)
	link.expect(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":3}}`)
	link.expect(`{"jsonrpc":"2.0","id":1,"result":"done"}`)
}

func TestMoreRequestsThanTheLimitAreRejectedAsBusy(t *testing.T) {
	ext := New("test", "1")
	release := make(chan struct{})
	ext.AddMethod("block", func(context.Context, json.RawMessage) (any, error) { <-release; return nil, nil })
	link := connectRaw(t, ext)
	link.initialize("[]")
	for id := range maxInbound + 1 {
		link.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"block"}`, id))
	}
	if id, failure := failureOf(t, link.receive()); failure.Code != CodeBusy || string(id) != fmt.Sprint(maxInbound) {
		t.Errorf("got %v with the id %s", failure, id)
	}
	close(release)
	for range maxInbound {
		link.receive()
	}
}

func TestManyResponsesToUnknownIdsEndTheLink(t *testing.T) {
	link := connectRaw(t, New("test", "1"))
	link.initialize("[]")
	for id := range maxStrays + 1 {
		link.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":1}`, id+1000))
	}
	select {
	case err := <-link.ended:
		if err == nil {
			t.Error("it ended without an error")
		}
	case <-time.After(patience):
		t.Error("the link is still open")
	}
}

func TestErrorsAndPanicsLeakNothing(t *testing.T) {
	ext := New("test", "1")
	ext.AddMethod("fail", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("a secret") })
	ext.AddMethod("panic", func(context.Context, json.RawMessage) (any, error) { panic("a secret") })
	ext.AddMethod("remote", func(ctx context.Context, _ json.RawMessage) (any, error) {
		return nil, ext.Host.Call(ctx, "host/secret", nil, nil)
	})
	ext.AddMethod("nonsense", func(context.Context, json.RawMessage) (any, error) { return func() {}, nil })
	ext.AddMethod("chosen", func(context.Context, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("wrapped: %w", &Error{42, "chosen", map[string]int{"a": 1}})
	})
	ext.AddMethod("large", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxFrame), nil })
	host := connect(t, ext)
	host.serve("host/secret", func(context.Context, json.RawMessage) (any, error) { return nil, Errorf(1003, "a secret") })
	for _, method := range []string{"fail", "panic", "remote", "nonsense"} {
		failure := mustFailWith(t, host.invoke(method, nil, nil), CodeInternal)
		if failure.Message != "internal error" || !strings.Contains(string(failure.Data), "incident") {
			t.Errorf("%s: got %v %s", method, failure, failure.Data)
		}
	}
	if failure := mustFailWith(t, host.invoke("chosen", nil, nil), 42); string(failure.Data) != `{"a":1}` {
		t.Errorf("got %s", failure.Data)
	}
	mustFailWith(t, host.invoke("large", nil, nil), CodeTooLarge)
}

func TestPendingCallsFailWhenTheLinkEnds(t *testing.T) {
	ext := New("test", "1")
	failed := make(chan error, 1)
	ext.AddMethod("outer", func(ctx context.Context, _ json.RawMessage) (any, error) {
		err := ext.Host.Call(ctx, "host/none", nil, nil)
		failed <- err
		return nil, err
	})
	link := connectRaw(t, ext)
	link.initialize("[]")
	link.send(`{"jsonrpc":"2.0","id":1,"method":"outer"}`)
	link.receive()
	link.out.Close()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := <-link.ended; err != nil {
		t.Error(err)
	}
}

// observedResult is a result that calls a function when it is encoded.
type observedResult struct{ encode func() }

func (r observedResult) MarshalJSON() ([]byte, error) {
	r.encode()
	return []byte("1"), nil
}

func TestAProgramEndsAfterTheResponsesOfItsHandlers(t *testing.T) {
	ext := New("test", "1")
	stopped := make(chan struct{})
	ext.OnStop(func(context.Context) error { close(stopped); return nil })
	link := connectRaw(t, ext)
	ext.AddMethod("slow", func(context.Context, json.RawMessage) (any, error) {
		return observedResult{func() {
			link.out.Close()
			select {
			case <-stopped:
				t.Error("OnStop ran before the response was sent")
			case <-time.After(unfinishedGrace / 5): // if it is ever to run too early, it does so at once
			}
		}}, nil
	})
	link.initialize("[]")
	link.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	link.expect(`{"jsonrpc":"2.0","id":1,"result":1}`)
	if err := <-link.ended; err != nil {
		t.Error(err)
	}
}
