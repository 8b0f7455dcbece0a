package k8s

import (
	"errors"
	"log"
)

type Provider struct{}

func (*Provider) Addrs(map[string]string, *log.Logger) ([]string, error) {
	return nil, errors.New("nothing is discovered here")
}

func (*Provider) Help() string { return "" }
