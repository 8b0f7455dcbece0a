// Package discover stands for the module of this name, which finds servers in ten clouds: their SDKs are half of the time that a
// build takes, and the server of the tests looks for no others.
package discover

import (
	"errors"
	"log"
)

type Provider interface {
	Addrs(args map[string]string, l *log.Logger) ([]string, error)
	Help() string
}

var Providers = map[string]Provider{}

type Discover struct{}

type Option func(*Discover) error

func WithProviders(map[string]Provider) Option { return func(*Discover) error { return nil } }

func New(...Option) (*Discover, error) { return &Discover{}, nil }

func (*Discover) Addrs(string, *log.Logger) ([]string, error) {
	return nil, errors.New("nothing is discovered here")
}
