//go:build !linux

package becket

import "os"

// take keeps stdin and stdout for the wire. Prints of Go code go to stderr; those of C code and of child processes that
// inherit the descriptor are not redirected on this system.
func (s *stdio) take() error {
	if s.out == nil {
		s.in, s.out = os.Stdin, os.Stdout
		os.Stdout = os.Stderr
	}
	return nil
}
