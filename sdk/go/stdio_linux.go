package becket

import (
	"fmt"
	"os"
	"syscall"
)

// take moves the wire to private descriptors. What is left under 0 and 1 is the null device and stderr: prints, C code
// and child processes write there, and never reach the wire.
func (s *stdio) take() error {
	if s.out != nil {
		return nil
	}
	in, err := reopen(syscall.Stdin, os.O_RDONLY)
	if err != nil {
		return err
	}
	out, err := reopen(syscall.Stdout, os.O_WRONLY)
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if err := syscall.Dup3(int(null.Fd()), syscall.Stdin, 0); err != nil {
		return err
	}
	if err := syscall.Dup3(syscall.Stderr, syscall.Stdout, 0); err != nil { // stderr is closed
		if err := syscall.Dup3(int(null.Fd()), syscall.Stdout, 0); err != nil {
			return err
		}
	}
	s.in, s.out = in, out
	return nil
}

// reopen returns a descriptor of its own for what this one refers to. Whether reads block is a property of the open
// file, which other processes may share: a pipe is opened anew.
func reopen(fd, mode int) (*os.File, error) {
	if file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), mode|syscall.O_NONBLOCK, 0); err == nil {
		return file, nil
	}
	copied, err := syscall.Dup(fd) // a socket cannot be opened anew
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(copied)
	_ = syscall.SetNonblock(copied, true)
	return os.NewFile(uintptr(copied), "wire"), nil
}
