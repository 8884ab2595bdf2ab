package becket

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFramesAreReadInAnyChunks(t *testing.T) {
	stream := "content-length:  5 \r\nX-Other: a\r\n\r\nkäseContent-Length: 2\r\nContent-Type: a/b; charset=\"UTF-8\"\r\n\r\n{}"
	reader := bufio.NewReader(iotest.OneByteReader(strings.NewReader(stream)))
	for _, want := range []string{"käse", "{}"} {
		if body, err := readFrame(reader); err != nil || string(body) != want {
			t.Fatalf("got %q, %v, want %q", body, err, want)
		}
	}
	if _, err := readFrame(reader); err != io.EOF {
		t.Fatalf("got %v at the end", err)
	}
}

func TestAFrameIsReadAsItWasWritten(t *testing.T) {
	frame := appendFrame(nil, []byte(`{"text":"käse"}`))
	if string(frame) != "Content-Length: 16\r\n\r\n{\"text\":\"käse\"}" {
		t.Fatalf("got %q", frame)
	}
	if body, err := readFrame(bufio.NewReader(strings.NewReader(string(frame)))); err != nil || len(body) != 16 {
		t.Fatalf("got %q, %v", body, err)
	}
}

func TestInvalidHeadersAreRejectedWithAQuotation(t *testing.T) {
	for _, stream := range []string{
		"Hello, world!\r\n\r\n",
		"Content-Length: 2\n\n{}",
		"Content-Length: -2\r\n\r\n{}",
		"Content-Length: +2\r\n\r\n{}",
		"Content-Length: 12345678901\r\n\r\n",
		"Content-Length: 4194305\r\n\r\n",
		"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"Content-Length : 2\r\n\r\n{}",
		"Content-Type: text\r\n\r\n",
		"Content-Length: 2\r\nContent-Type: a; charset=latin-1\r\n\r\n{}",
		"X: " + strings.Repeat("a", 5000) + "\r\nContent-Length: 2\r\n\r\n{}",
		strings.Repeat("X: a\r\n", 20) + "Content-Length: 2\r\n\r\n{}",
		"Content-Length: 5\r\n\r\n{}",
		"Content-Le",
	} {
		var broken *frameError
		if _, err := readFrame(bufio.NewReader(strings.NewReader(stream))); !errors.As(err, &broken) {
			t.Errorf("%.40q: got %v", stream, err)
		}
	}
	_, err := readFrame(bufio.NewReader(strings.NewReader("Hello, world!\r\n")))
	if !strings.Contains(err.Error(), "Hello, world!") {
		t.Errorf("the error does not quote the text: %v", err)
	}
}
