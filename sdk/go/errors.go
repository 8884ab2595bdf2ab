package becket

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Error is an error response. A handler returns one to choose what its caller gets; of any other error the caller gets
// only "internal error" and an incident id, under which stderr has the text.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a formatted message.
func Errorf(code int, format string, arguments ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// Problem is one reason why params are invalid: a JSON pointer, and what is wrong there.
type Problem struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// InvalidParams returns the error for params with these problems.
func InvalidParams(problems ...Problem) *Error {
	texts := make([]string, 0, maxProblems+1)
	for i, each := range problems {
		if i == maxProblems {
			problems = problems[:maxProblems:maxProblems]
			texts = append(texts, "there are further problems")
			break
		}
		pointer := each.Pointer
		if pointer == "" {
			pointer = "/"
		}
		texts = append(texts, pointer+": "+each.Message)
	}
	return &Error{
		Code:    CodeInvalidParams,
		Message: "invalid params: " + strings.Join(texts, "; "),
		Data:    map[string]any{"problems": problems},
	}
}

// RemoteError is the error with which the host responded to a call. A handler that returns it unchanged has failed: its
// own caller gets "internal error", not an error that was meant for somebody else.
type RemoteError struct {
	Method  string
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the method and the message.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s failed: %s (code %d)", e.Method, e.Message, e.Code)
}

var (
	// ErrClosed is the error of calls and events after the end of the link.
	ErrClosed = errors.New("becket: the link to the host has ended")
	// ErrBusy is the error of a call that could not be sent in time, because too many are pending or unread.
	ErrBusy = errors.New("becket: too many calls are pending, or the host does not read")
	// ErrCancelled is the cause of a context whose request the host has cancelled.
	ErrCancelled = errors.New("becket: the host cancelled the request")
	// ErrDeadline is the cause of a context whose request has passed the host's deadline.
	ErrDeadline = errors.New("becket: the deadline of the request has passed")
	// ErrStopping is the cause of a context that ends because the extension does.
	ErrStopping = errors.New("becket: the extension is stopping")
)

const (
	maxProblems = 20
	maxText     = 200
)

// truncate returns a text of at most maxText characters.
func truncate(text string) string {
	if characters := []rune(text); len(characters) > maxText {
		return string(characters[:maxText-3]) + "..."
	}
	return text
}
