package becket

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxInbound       = 256      // requests of the host that run at once
	maxInboundBytes  = 16 << 20 // of their params
	maxSmall         = 256      // bytes of a response that is bounded by the number of requests
	maxPending       = 1024
	maxAbandoned     = 4096 // calls whose late responses are dropped without a count
	maxStrays        = 100  // responses to unknown ids in a minute
	maxNotifications = 8 << 20
	maxCallDepth     = 32
	callTimeout      = 60 * time.Second
	cancelGrace      = 500 * time.Millisecond // for a cancelled handler to return before its request gets a response
	maxCallID        = 1<<31 - 1
)

// handlerFunc serves one request or notification; params are absent or checked JSON, without `_meta`.
type handlerFunc func(ctx context.Context, params json.RawMessage) (any, error)

// peer is one end of a link: it calls, and serves what the other end calls.
type peer struct {
	writer writer
	logger string

	// Both return nil for an unknown method.
	findHandler      func(method string) handlerFunc
	findNotification func(method string) handlerFunc

	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{}

	features atomic.Pointer[map[string]bool]
	work     chan func() // to goroutines that wait for it: their stacks have grown already

	mu           sync.Mutex
	lastID       int64
	pending      map[int64]chan message
	abandoned    map[int64]bool
	oldest       []int64 // abandoned ids, in order
	strays       []time.Time
	requests     map[string]*Request
	running      int // handlers that have not returned
	unfinished   int // requests whose handler has not returned, or whose response is not sent
	inboundBytes int
	batchBytes   int           // of responses that wait for the rest of their batch
	finished     chan struct{} // closed when a request is finished; nil if nothing waits for that
	queue        []func()      // notifications, handled one at a time
	queueBytes   int
	isDraining   bool
	err          error
	closed       chan struct{}
	stopped      chan struct{} // closed after the response to shutdown
}

func newPeer(out io.Writer, logger string) *peer {
	p := &peer{
		logger:    logger,
		slots:     make(chan struct{}, maxPending),
		pending:   map[int64]chan message{},
		abandoned: map[int64]bool{},
		requests:  map[string]*Request{},
		closed:    make(chan struct{}),
		stopped:   make(chan struct{}),
		work:      make(chan func()),
	}
	p.writer = writer{out: out, failed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// limitFeatures sets what both ends support.
func (p *peer) limitFeatures(names []string) {
	features := map[string]bool{}
	for _, name := range names {
		features[name] = true
	}
	p.features.Store(&features)
}

func (p *peer) has(feature string) bool {
	features := p.features.Load()
	return features != nil && (*features)[feature]
}

// -- reading

// read receives messages until the stream ends, and returns nil then or what was wrong with it.
func (p *peer) read(in io.Reader) error {
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		body, err := readFrame(reader)
		if err == nil {
			p.receive(body)
			err = p.failure()
		}
		if err != nil {
			p.fail(ErrClosed)
			if errors.Is(err, io.EOF) || errors.Is(err, ErrClosed) || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
	}
}

// fail ends all pending calls. Handlers go on: what was requested before the end may still get a response.
func (p *peer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.closed)
	}
}

func (p *peer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *peer) receive(body []byte) {
	if err := scanJSON(body); errors.Is(err, errTooLarge) {
		p.reply(nil, encodeError(findID(body), Errorf(CodeTooLarge, "too large: %v", err)))
		return
	} else if err != nil {
		p.reply(nil, encodeError(nil, Errorf(CodeParseError, "parse error: %v", err)))
		return
	}
	body = bytes.TrimSpace(body)
	if body[0] != '[' {
		p.receiveOne(body, nil)
		return
	}
	elements := children(body)
	switch {
	case len(elements) == 0:
		p.reply(nil, encodeError(nil, Errorf(CodeInvalidRequest, "invalid request: the batch is empty")))
	case len(elements) > maxBatch:
		text := "too large: the batch has %d messages, the limit is %d"
		p.reply(nil, encodeError(nil, Errorf(CodeTooLarge, text, len(elements), maxBatch)))
	default:
		group := &batch{waiting: 1}
		for _, element := range elements {
			p.receiveOne(body[element.start:element.end:element.end], group)
		}
		group.finish(p, nil)
	}
}

func (p *peer) receiveOne(raw json.RawMessage, group *batch) {
	group.expect()
	m, problem := parseMessage(raw)
	switch {
	case problem != nil && m.isResponse(): // there are no responses to responses
		group.finish(p, nil)
	case problem != nil:
		p.reply(group, encodeError(m.id, problem))
	case m.isResponse():
		p.settle(m)
		group.finish(p, nil)
	case m.id == nil:
		p.receiveNotification(m)
		group.finish(p, nil)
	default:
		p.receiveRequest(m, group)
	}
}

// reply sends a response from the reader, which never waits: the other end may be waiting for it to read.
func (p *peer) reply(group *batch, body []byte) {
	if group != nil {
		group.finish(p, body)
	} else if err := p.writer.send(body); err != nil {
		p.fail(err)
	}
}

// batch collects the responses to one batch; a nil batch stands for a single message.
type batch struct {
	mu        sync.Mutex
	waiting   int
	responses [][]byte
	size      int
}

func (b *batch) expect() {
	if b != nil {
		b.mu.Lock()
		b.waiting++
		b.mu.Unlock()
	}
}

// finish adds a response, or none, and sends all of them with the last.
func (b *batch) finish(p *peer, body []byte) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	if body != nil {
		if b.size+len(body)+1 > maxFrame || !p.holdResponse(len(body)) {
			m, _ := parseMessage(body)
			body = encodeError(m.id, Errorf(CodeTooLarge, "too large: send this request by itself"))
			p.holdResponse(len(body))
		}
		b.size += len(body) + 1
		b.responses = append(b.responses, body)
	}
	if b.waiting == 0 && len(b.responses) > 0 {
		p.reply(nil, append(append([]byte{'['}, bytes.Join(b.responses, []byte(","))...), ']'))
		p.holdResponse(len(b.responses) - b.size)
	}
}

// holdResponse counts the bytes of a response that waits for its batch, and returns false where a large one exceeds the
// budget.
func (p *peer) holdResponse(size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size > maxSmall && p.batchBytes+size > maxInboundBytes {
		return false
	}
	p.batchBytes += size
	return true
}

// -- serving

// Request is a request of the host that is being handled. RequestOf returns that of a handler's context.
type Request struct {
	// ID is the id of the request, as JSON.
	ID json.RawMessage
	// Method is the method that the host called.
	Method string
	// Meta is the member `_meta` of the params, or nil.
	Meta json.RawMessage

	peer   *peer
	group  *batch
	depth  int64
	size   int
	params json.RawMessage
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	hasCredit  bool
	credit     int64
	hasMore    chan struct{} // closed when credit was granted; nil if nothing waits for that
	isAnswered bool
	onAnswered func()
}

type requestKey struct{}

// requestContext is the context of a handler.
type requestContext struct {
	context.Context
	request *Request
}

// Value returns the request, or what the context besides has.
func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.request
	}
	return c.Context.Value(key)
}

// RequestOf returns the request that a context belongs to, and nil if it belongs to none.
func RequestOf(ctx context.Context) *Request {
	request, _ := ctx.Value(requestKey{}).(*Request)
	return request
}

// Progress reports the progress of the request that a context belongs to: any JSON value. It waits while the host has
// not read earlier ones, and does nothing for a host that does not support progress.
func Progress(ctx context.Context, value any) error {
	request := RequestOf(ctx)
	if request == nil {
		return errors.New("becket: this context belongs to no request")
	}
	if !request.peer.has("progress") {
		return nil
	}
	text, err := encodeJSON(value)
	if err != nil {
		return err
	}
	params := append(append(json.RawMessage(`{"token":`), request.ID...), `,"value":`...)
	return request.send(ctx, MethodProgress, append(append(params, text...), '}'))
}

func (p *peer) receiveRequest(m message, group *batch) {
	key := idKey(m.id)
	p.mu.Lock()
	isUsed := p.requests[key] != nil
	p.mu.Unlock()
	if isUsed {
		p.reply(group, encodeError(nil, Errorf(CodeInvalidRequest, "invalid request: this id is in use")))
		return
	}
	if m.method == MethodPing {
		p.reply(group, encodeResult(m.id, json.RawMessage("null")))
		return
	}
	reject := func(failure *Error) { p.reply(group, encodeError(m.id, failure)) }
	if len(m.params) > 0 && m.params[0] != '{' && m.params[0] != '[' {
		reject(InvalidParams(Problem{"", "expected an object or an array, got " + kindOf(m.params)}))
		return
	}
	handler := p.findHandler(m.method)
	if handler == nil {
		reject(Errorf(CodeUnknownMethod, "unknown method: %s", truncate(m.method)))
		return
	}
	params, whole, meta := splitMeta(m.params, p.has("no_params"))
	if meta.depth > maxCallDepth {
		reject(Errorf(CodeBusy, "busy: %d calls within calls, the limit is %d", meta.depth, maxCallDepth))
		return
	}
	request := &Request{
		ID: m.id, Method: m.method, Meta: whole, peer: p, group: group, depth: meta.depth, size: len(m.params), params: params,
	}
	request.hasCredit, request.credit = meta.credit >= 0, meta.credit
	p.mu.Lock()
	switch {
	case p.running >= maxInbound:
		p.mu.Unlock()
		reject(Errorf(CodeBusy, "busy: %d requests are running", maxInbound))
		return
	case p.inboundBytes > 0 && p.inboundBytes+request.size > maxInboundBytes:
		p.mu.Unlock()
		reject(Errorf(CodeBusy, "busy: the params of running requests have %d bytes", p.inboundBytes))
		return
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	request.cancel = cancel
	p.requests[key] = request
	p.running++
	p.unfinished++
	p.inboundBytes += request.size
	p.mu.Unlock()
	p.start(func() { p.serve(&requestContext{ctx, request}, request, handler, meta) })
}

// start runs a function in a goroutine that waits for work, or in a new one.
func (p *peer) start(run func()) {
	select {
	case p.work <- run:
	default:
		go func() {
			for {
				run()
				select {
				case run = <-p.work:
				case <-p.ctx.Done():
					return
				}
			}
		}()
	}
}

func (p *peer) serve(ctx context.Context, request *Request, handler handlerFunc, meta callMeta) {
	if meta.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, meta.timeout, ErrDeadline)
		defer stop()
	}
	// A handler that ignores its context must not keep the caller waiting.
	stop := context.AfterFunc(ctx, func() {
		time.Sleep(cancelGrace)
		request.respond(nil, causeOf(ctx))
	})
	result, err := p.run(ctx, request, handler)
	stop()
	p.mu.Lock()
	p.running-- // before the response: the host may send the next request at once
	p.inboundBytes -= request.size
	p.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		err = causeOf(ctx)
	}
	request.respond(result, err)
	request.cancel(nil)
	p.finish()
}

// finish counts a request as finished: its response was sent.
func (p *peer) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfinished--
	if p.finished != nil {
		close(p.finished)
		p.finished = nil
	}
}

// run calls the handler; a panic is an error.
func (p *peer) run(ctx context.Context, request *Request, handler handlerFunc) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return handler(ctx, request.params)
}

// causeOf returns the error response to a request whose context has ended.
func causeOf(ctx context.Context) *Error {
	if errors.Is(context.Cause(ctx), ErrDeadline) {
		return Errorf(CodeTimeout, "timeout: the caller's deadline has passed")
	}
	return Errorf(CodeCancelled, "cancelled")
}

// respond sends the response, unless there was one.
func (r *Request) respond(result any, err error) {
	r.mu.Lock()
	isLate := r.isAnswered
	r.isAnswered = true
	r.mu.Unlock()
	p := r.peer
	if isLate {
		return
	}
	body := p.encodeResponse(r, result, err)
	p.mu.Lock()
	delete(p.requests, idKey(r.ID))
	p.mu.Unlock()
	if r.group != nil {
		r.group.finish(p, body)
	} else {
		_ = p.writer.sendLast(body)
	}
	if r.onAnswered != nil {
		r.onAnswered()
	}
}

// encodeResponse is the one boundary between errors of the program and those of the wire.
func (p *peer) encodeResponse(r *Request, result any, err error) []byte {
	var body []byte
	if err == nil {
		var text []byte
		if text, err = encodeJSON(result); err == nil {
			body = encodeResult(r.ID, text)
		} else {
			err = fmt.Errorf("the result has no JSON: %w", err)
		}
	}
	if err != nil {
		var failure *Error
		if !errors.As(err, &failure) {
			incident := make([]byte, 6)
			_, _ = rand.Read(incident)
			id := hex.EncodeToString(incident)
			logToStderr(LogLevelError, p.logger, fmt.Sprintf("incident %s: the handler of %q failed: %v", id, r.Method, err))
			failure = &Error{CodeInternal, "internal error", map[string]string{"incident": id}}
		}
		body = encodeError(r.ID, failure)
	}
	if len(body) > maxFrame {
		text := "too large: the response has %d bytes, the limit is %d"
		return encodeError(r.ID, Errorf(CodeTooLarge, text, len(body), maxFrame))
	}
	return body
}

// cancelAll ends the contexts of all handlers but that of one request.
func (p *peer) cancelAll(cause error, but *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, request := range p.requests {
		if request != but {
			request.cancel(cause)
		}
	}
}

// waitIdle returns whether all requests but this many were finished in time.
func (p *peer) waitIdle(limit time.Duration, others int) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		p.mu.Lock()
		if p.unfinished <= others {
			p.mu.Unlock()
			return true
		}
		if p.finished == nil {
			p.finished = make(chan struct{})
		}
		finished := p.finished
		p.mu.Unlock()
		select {
		case <-finished:
		case <-timer.C:
			return false
		}
	}
}

// -- notifications

func (p *peer) receiveNotification(m message) {
	switch m.method {
	case MethodCancelRequest:
		if request := p.findRequest(m.params, nil); request != nil {
			request.cancel(ErrCancelled)
		}
		return
	case MethodCredit:
		var count int64
		if request := p.findRequest(m.params, &count); request != nil && count > 0 {
			request.grant(count)
		}
		return
	}
	handler := p.findNotification(m.method)
	if handler == nil {
		return
	}
	params, _, _ := splitMeta(m.params, p.has("no_params"))
	handle := func() {
		request := &Request{Method: m.method, params: params}
		if _, err := p.run(p.ctx, request, handler); err != nil {
			logToStderr(LogLevelError, p.logger, fmt.Sprintf("the handler of %q failed: %v", m.method, err))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size := len(params) + 64
	if p.queueBytes += size; p.queueBytes > maxNotifications && p.err == nil {
		p.err = errors.New("too many notifications wait for their handlers")
		close(p.closed)
		return
	}
	p.queue = append(p.queue, func() {
		handle()
		p.mu.Lock()
		p.queueBytes -= size
		p.mu.Unlock()
	})
	if !p.isDraining {
		p.isDraining = true
		go p.drain()
	}
}

// drain handles notifications in their order.
func (p *peer) drain() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.isDraining = false
			p.mu.Unlock()
			return
		}
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		next()
	}
}

// findRequest returns the running request that the params of a notification name, and stores their member `n`.
func (p *peer) findRequest(params json.RawMessage, count *int64) *Request {
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	var found *Request
	for _, member := range children(params) {
		value := params[member.start:member.end]
		switch {
		case string(member.name) == "id" && isUsableID(value):
			p.mu.Lock()
			found = p.requests[idKey(value)]
			p.mu.Unlock()
		case string(member.name) == "n" && count != nil:
			*count, _ = strconv.ParseInt(string(value), 10, 64)
		}
	}
	return found
}

func (r *Request) grant(count int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.credit += count
	if r.hasMore != nil {
		close(r.hasMore)
		r.hasMore = nil
	}
}

// takeCredit waits until the host allows one more event.
func (r *Request) takeCredit(ctx context.Context) error {
	for {
		r.mu.Lock()
		if !r.hasCredit || r.credit > 0 {
			r.credit--
			r.mu.Unlock()
			return nil
		}
		if r.hasMore == nil {
			r.hasMore = make(chan struct{})
		}
		more := r.hasMore
		r.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.peer.closed:
			return ErrClosed
		}
	}
}

// send sends an event of the request. It waits for credit, and while the host does not read.
func (r *Request) send(ctx context.Context, method string, params json.RawMessage) error {
	if err := r.takeCredit(ctx); err != nil {
		return err
	}
	if method != MethodProgress && (r.peer.has("deadline") || r.peer.has("credit")) {
		params = insertMeta(params, `"parent":`+string(r.ID), r.peer.has("no_params"))
	}
	return r.peer.sendNotification(ctx, method, params)
}

func (p *peer) sendNotification(ctx context.Context, method string, params json.RawMessage) error {
	body := encodeNotification(method, params)
	if len(body) > maxFrame {
		return fmt.Errorf("becket: %s has %d bytes, the limit is %d", method, len(body), maxFrame)
	}
	if err := p.writer.wait(ctx, sendHigh); err != nil {
		return err
	}
	return p.writer.send(body)
}

// notify sends a notification; one that is sent within a request belongs to it.
func (p *peer) notify(ctx context.Context, method string, params any) error {
	text, err := encodeParams(params)
	if err != nil {
		return err
	}
	if request := RequestOf(ctx); request != nil && request.peer == p {
		return request.send(ctx, method, text)
	}
	return p.sendNotification(ctx, method, text)
}

func encodeParams(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	text, err := encodeJSON(params)
	if err != nil {
		return nil, fmt.Errorf("becket: the params have no JSON: %w", err)
	}
	return text, nil
}

// -- calling

// call calls a method of the other end and decodes its result; nil drops it. The deadline is that of the context, and a
// minute at most unless it has one.
func (p *peer) call(ctx context.Context, method string, params, result any) error {
	text, err := encodeParams(params)
	if err != nil {
		return err
	}
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, callTimeout)
		defer stop()
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ErrBusy)
	}
	if err := p.writer.wait(ctx, sendQueue); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if text, err = p.addCallMeta(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	id, response := p.addPending()
	body := encodeRequest(id, method, text)
	if len(body) > maxFrame {
		p.removePending(id, false)
		return fmt.Errorf("%s: the request has %d bytes, the limit is %d", method, len(body), maxFrame)
	}
	if err := p.writer.send(body); err != nil {
		p.removePending(id, false)
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-response:
		return decodeResponse(method, m, result)
	case <-p.closed:
		p.removePending(id, false)
		return fmt.Errorf("%s: %w", method, ErrClosed)
	case <-ctx.Done():
		p.removePending(id, true)
		if p.has("cancel") {
			_ = p.writer.send(encodeNotification(MethodCancelRequest, json.RawMessage(fmt.Sprintf(`{"id":%d}`, id))))
		}
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// addCallMeta adds the remaining time, and the request that the call belongs to.
func (p *peer) addCallMeta(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if !p.has("deadline") {
		return params, nil
	}
	members := make([]string, 0, 3)
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		members = append(members, fmt.Sprintf(`"timeout_ms":%d`, max(1, time.Until(deadline).Milliseconds())))
	}
	if request := RequestOf(ctx); request != nil && request.peer == p {
		if request.depth >= maxCallDepth {
			return nil, fmt.Errorf("%d calls within calls: %w", request.depth, ErrBusy)
		}
		request.mu.Lock()
		isOpen := !request.isAnswered
		request.mu.Unlock()
		if isOpen {
			members = append(members, `"parent":`+string(request.ID))
		}
		members = append(members, fmt.Sprintf(`"depth":%d`, request.depth+1))
	}
	return insertMeta(params, strings.Join(members, ","), p.has("no_params")), nil
}

func (p *peer) addPending() (int64, chan message) {
	response := make(chan message, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.lastID = p.lastID%maxCallID + 1
		if p.pending[p.lastID] == nil && !p.abandoned[p.lastID] {
			p.pending[p.lastID] = response
			return p.lastID, response
		}
	}
}

// removePending forgets a call; a response to an abandoned one may still arrive.
func (p *peer) removePending(id int64, isAbandoned bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
	if isAbandoned {
		p.abandoned[id] = true
		p.oldest = append(p.oldest, id)
		if len(p.oldest) > maxAbandoned {
			delete(p.abandoned, p.oldest[0])
			p.oldest = p.oldest[1:]
		}
	}
}

// settle gives a response to its call.
func (p *peer) settle(m message) {
	id, err := strconv.ParseInt(string(m.id), 10, 64)
	p.mu.Lock()
	defer p.mu.Unlock()
	response := p.pending[id]
	switch {
	case err == nil && response != nil:
		delete(p.pending, id)
		response <- m
	case err == nil && p.abandoned[id]:
		delete(p.abandoned, id)
	default:
		now := time.Now()
		p.strays = append(p.strays, now)
		for len(p.strays) > 0 && now.Sub(p.strays[0]) > time.Minute {
			p.strays = p.strays[1:]
		}
		if len(p.strays) > maxStrays && p.err == nil {
			p.err = errors.New("too many responses to unknown ids")
			close(p.closed)
		}
	}
}

func decodeResponse(method string, m message, result any) error {
	if m.failure != nil && m.result != nil {
		return fmt.Errorf("%s: the response has both a result and an error", method)
	}
	if m.failure != nil {
		failure := struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		}{}
		if err := json.Unmarshal(m.failure, &failure); err != nil {
			return fmt.Errorf("%s: the error of the response is malformed: %w", method, err)
		}
		return &RemoteError{method, failure.Code, failure.Message, failure.Data}
	}
	if result == nil {
		return nil
	}
	if raw, isRaw := result.(*json.RawMessage); isRaw {
		*raw = m.result
		return nil
	}
	if problems := decodeValue(m.result, result, lenient); len(problems) > 0 {
		return fmt.Errorf("%s: the result is malformed: %s: %s", method, problems[0].Pointer, problems[0].Message)
	}
	return nil
}
