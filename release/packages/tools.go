//go:build tools

// Package tools names the program of others, so that `go mod tidy` keeps its module.
package tools

import _ "github.com/goreleaser/nfpm/v2/cmd/nfpm"
