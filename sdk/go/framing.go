package becket

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxFrame       = 4 << 20 // bytes of one message; more is better passed as the path of a file
	maxHeader      = 4 << 10
	maxHeaderLines = 16
	maxQuoted      = 64 // bytes of an invalid header that an error shows
)

// frameError says why no further frame can be read: the start of the next one is unknown.
type frameError struct{ problem string }

func (e *frameError) Error() string { return "invalid frame: " + e.problem }

// readFrame returns the body of the next frame, and io.EOF at the end between two frames.
func readFrame(r *bufio.Reader) ([]byte, error) {
	length, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if length > maxFrame {
		return nil, &frameError{fmt.Sprintf("%d bytes were announced, the limit is %d", length, maxFrame)}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, unexpectedEnd(err)
	}
	return body, nil
}

func readHeader(r *bufio.Reader) (length int, err error) {
	length = -1
	size := 0
	for lines := 0; ; lines++ {
		line, err := r.ReadSlice('\n')
		size += len(line)
		if err != nil {
			if errors.Is(err, io.EOF) && size == 0 {
				return 0, io.EOF
			}
			if errors.Is(err, bufio.ErrBufferFull) || size > maxHeader {
				return 0, &frameError{"the header is too long: " + quote(line)}
			}
			return 0, unexpectedEnd(err)
		}
		if size > maxHeader || lines > maxHeaderLines {
			return 0, &frameError{"the header is too long: " + quote(line)}
		}
		text, found := bytes.CutSuffix(line, []byte("\r\n"))
		if !found {
			return 0, &frameError{"a header line must end in CRLF: " + quote(line)}
		}
		if len(text) == 0 {
			if length < 0 {
				return 0, &frameError{"there is no Content-Length"}
			}
			return length, nil
		}
		name, value, found := bytes.Cut(text, []byte(":"))
		if !found || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return 0, &frameError{"expected a header, got " + quote(line)}
		}
		switch value := strings.Trim(string(value), " \t"); strings.ToLower(string(name)) {
		case "content-length":
			if length >= 0 {
				return 0, &frameError{"there is a second Content-Length"}
			}
			if length, err = parseLength(value); err != nil {
				return 0, err
			}
		case "content-type":
			if err := checkCharset(value); err != nil {
				return 0, err
			}
		}
	}
}

func parseLength(value string) (int, error) {
	if len(value) == 0 || len(value) > 10 || strings.Trim(value, "0123456789") != "" {
		return 0, &frameError{"the Content-Length is not a number: " + quote([]byte(value))}
	}
	length, err := strconv.ParseInt(value, 10, 64)
	return int(length), err
}

func checkCharset(value string) error {
	for _, parameter := range strings.Split(value, ";")[1:] {
		name, charset, _ := strings.Cut(parameter, "=")
		charset = strings.ToLower(strings.Trim(strings.TrimSpace(charset), `"`))
		if strings.EqualFold(strings.TrimSpace(name), "charset") && charset != "utf-8" && charset != "utf8" {
			return &frameError{"the charset must be UTF-8, got " + quote([]byte(charset))}
		}
	}
	return nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &frameError{"the stream ended within a frame"}
	}
	return err
}

func quote(data []byte) string {
	if len(data) > maxQuoted {
		return strconv.QuoteToASCII(string(data[:maxQuoted])) + "..."
	}
	return strconv.QuoteToASCII(string(data))
}

// appendFrame appends a frame with this body to a buffer.
func appendFrame(buffer, body []byte) []byte {
	buffer = append(buffer, "Content-Length: "...)
	buffer = strconv.AppendInt(buffer, int64(len(body)), 10)
	buffer = append(buffer, "\r\n\r\n"...)
	return append(buffer, body...)
}
