package becket

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	sendHigh  = 256 << 10 // bytes that the host has not read before events wait
	sendQueue = 8 << 20   // the same for calls
	sendMax   = 4 * sendQueue
	flushTime = 500 * time.Millisecond
)

// writer sends frames in order. Those that wait are written together.
type writer struct {
	out    io.Writer
	failed chan struct{} // closed when nothing can be sent any more

	mu        sync.Mutex
	queue     []byte
	spare     []byte
	inFlight  int // bytes that are being written
	isWriting bool
	drained   chan struct{} // closed when bytes were written; nil if nothing waits for that
	err       error
}

// send adds a frame, without waiting, and writes it in another goroutine.
func (w *writer) send(body []byte) error {
	mustWrite, err := w.add(body)
	if mustWrite {
		go w.flush()
	}
	return err
}

// sendLast adds a frame and writes it here: the goroutine has nothing else to do.
func (w *writer) sendLast(body []byte) error {
	mustWrite, err := w.add(body)
	if mustWrite {
		w.flush()
	}
	return err
}

func (w *writer) add(body []byte) (mustWrite bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue)+w.inFlight > sendMax {
		w.fail(ErrBusy) // the host has not read for so long that it never will
	}
	if w.err != nil {
		return false, w.err
	}
	w.queue = appendFrame(w.queue, body)
	mustWrite = !w.isWriting
	w.isWriting = true
	return mustWrite, nil
}

func (w *writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && w.err == nil {
		chunk := w.queue
		w.queue, w.inFlight = w.spare[:0], len(chunk)
		w.mu.Unlock()
		_, err := w.out.Write(chunk)
		w.mu.Lock()
		w.inFlight = 0
		if w.spare = chunk; cap(chunk) > sendHigh {
			w.spare = nil
		}
		if err != nil {
			w.fail(ErrClosed)
		}
		w.wake()
	}
	w.isWriting = false
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
		close(w.failed)
		w.wake()
	}
}

// isFull returns whether what can wait should not be sent.
func (w *writer) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)+w.inFlight > sendQueue
}

func (w *writer) wake() {
	if w.drained != nil {
		close(w.drained)
		w.drained = nil
	}
}

// wait returns when at most this many bytes are unread.
func (w *writer) wait(ctx context.Context, limit int) error {
	for {
		w.mu.Lock()
		if w.err != nil || len(w.queue)+w.inFlight <= limit {
			w.mu.Unlock()
			return w.err
		}
		if w.drained == nil {
			w.drained = make(chan struct{})
		}
		drained := w.drained
		w.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close waits a little until all is written, and rejects what is sent later.
func (w *writer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = w.wait(ctx, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(ErrClosed)
}
