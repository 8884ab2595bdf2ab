package main

import (
	"context"
	"testing"
)

func TestGreet(t *testing.T) {
	if got, err := greet(context.Background(), greeting{Name: "Ada"}); err != nil || got != "Hello, Ada!" {
		t.Errorf("got %q, %v", got, err)
	}
}
